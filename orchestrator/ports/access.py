"""Caller keys, short-lived tickets and request limits (RT-22, RT-23)."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.turns.access import ApiKey, Caller, Scope
from orchestrator.types import SessionId, TenantId, UserId

acting_tenant: ContextVar[str] = ContextVar("acting_tenant", default="")
"""The tenant for which the current task queries the stores; empty for none, which finds nothing in rows
guarded by tenant. APIs set it after authentication.
"""


class ApiKeys(Protocol):
    """Caller keys; only hashes are stored. Every method raises Unavailable."""

    async def create(
        self,
        tenant_id: TenantId,
        name: str,
        scopes: frozenset[Scope],
        *,
        user_id: UserId | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """Create a key; return it with its text, which is never shown again."""
        ...

    async def list(self, tenant_id: TenantId | None = None) -> list[ApiKey]:
        """Return keys, newest first, including revoked and expired ones; None: of all tenants."""
        ...

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key. Raises NotFound."""
        ...

    async def find(self, text: str) -> ApiKey | None:
        """Return the key with this text if it is valid now."""
        ...

    async def is_valid(self, key_id: str) -> bool:
        """Return whether a key is valid now: neither revoked nor expired."""
        ...


class Tickets(Protocol):
    """Short-lived credentials for clients that cannot send headers.

    A ticket is valid for a minute, and longer for streams it opened.
    """

    async def issue(self, caller: Caller, *, lives_s: int) -> str:
        """Create a ticket that is valid for `lives_s` seconds."""
        ...

    async def redeem(self, ticket: str, *, stream: SessionId | None = None) -> Caller | None:
        """Return the ticket's caller, or None if it is unknown or expired.

        `stream`: the requested session's events; a ticket kept for them can be older.
        """
        ...

    async def keep(self, ticket: str, stream: SessionId, caller: Caller, *, lives_s: int) -> None:
        """Extend a ticket for the events of one session, as this caller."""
        ...


@dataclass(frozen=True, slots=True)
class Limit:
    """A rate limit: `per_minute` requests on average, `burst` at the same time. `key`: whom to count."""

    key: str
    per_minute: int
    burst: int


class RequestLimits(Protocol):
    """Counts requests of all gateways together."""

    async def take(self, tenant_id: TenantId, limits: Sequence[Limit]) -> float:
        """Count a request against all limits, or against none and return the seconds to wait.

        Raises Unavailable.
        """
        ...
