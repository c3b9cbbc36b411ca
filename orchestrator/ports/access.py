"""Ports for API keys, short-lived tickets and request rate limits (RT-22, RT-23)."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from orchestrator.turns.access import ApiKey, Caller
from orchestrator.types import SessionId, TenantId

acting_tenant: ContextVar[str] = ContextVar("acting_tenant", default="")
"""The tenant of the current request. APIs set this variable after authentication.

While it is empty, row-level security hides the rows of all tenants from the gateway.
"""


class ApiKeys(Protocol):
    """A checker of API keys. Every method can raise Unavailable."""

    async def find(self, text: str) -> ApiKey | None:
        """Return the key with this text, or None if the key is unknown or no longer valid."""
        ...

    async def is_valid(self, key_id: str) -> bool:
        """Return whether a key is neither revoked nor expired."""
        ...


class Tickets(Protocol):
    """Short-lived credentials, for clients that cannot send headers."""

    async def issue(self, caller: Caller, *, lives_s: int) -> str:
        """Create a ticket that is valid for `lives_s` seconds."""
        ...

    async def redeem(self, ticket: str, *, stream: SessionId | None = None) -> Caller | None:
        """Return the ticket's caller, or None if the ticket is unknown or expired.

        `stream`: the session whose events are requested. Tickets that `keep` has extended for this session are
        also valid.
        """
        ...

    async def keep(self, ticket: str, stream: SessionId, caller: Caller, *, lives_s: int) -> None:
        """Keep a ticket valid for `lives_s` seconds from now, but only for the event stream of session `stream`."""
        ...


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit: `per_minute` requests on average, in bursts of up to `burst` requests.

    `key`: identifies whose requests are counted, for example a caller or a session.
    """

    key: str
    per_minute: int
    burst: int


class RequestLimits(Protocol):
    """Rate limits for requests, shared by all gateways."""

    async def take(self, tenant_id: TenantId, limits: Sequence[Limit]) -> float:
        """Count a request and return 0, or return the seconds to wait if any limit is reached.

        A request over a limit doesn't count. Raises Unavailable.
        """
        ...
