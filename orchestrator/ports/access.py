"""Keys of callers, short-lived tickets, and how often each may ask (RT-22, RT-23)."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.turns.access import ApiKey, Caller, Scope
from orchestrator.types import TenantId, UserId

acting_tenant: ContextVar[str] = ContextVar("acting_tenant", default="")
"""For which tenant the present task asks the stores; empty: for none, which finds nothing where rows are
guarded by tenant. Doors set it once they know who asks."""


class ApiKeys(Protocol):
    """Keys of callers; only their hashes are kept. Every method raises Unavailable."""

    async def create(
        self,
        tenant_id: TenantId,
        name: str,
        scopes: frozenset[Scope],
        *,
        user_id: UserId | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key and its text, which is never shown again."""
        ...

    async def list(self, tenant_id: TenantId | None = None) -> list[ApiKey]:
        """Newest first, revoked and expired ones as well; None: of all tenants."""
        ...

    async def revoke(self, key_id: str) -> ApiKey:
        """Make a key useless. Raises NotFound."""
        ...

    async def find(self, text: str) -> ApiKey | None:
        """The key of this text if it may be used now."""
        ...

    async def is_valid(self, key_id: str) -> bool:
        """Check that a key may be used now: it is neither revoked nor expired."""
        ...


class Tickets(Protocol):
    """Stand for a caller where no header can be sent; valid for a minute or two."""

    async def issue(self, caller: Caller, *, lives_s: int) -> str:
        """A new ticket for a caller, valid for so many seconds."""
        ...

    async def redeem(self, ticket: str) -> Caller | None:
        """Whose ticket it is; None when it is unknown or too old."""
        ...


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `per_minute` requests on average, `burst` of them at once. `key` names who is counted."""

    key: str
    per_minute: int
    burst: int


class RequestLimits(Protocol):
    """Counts requests, over all gateways together."""

    async def take(self, tenant_id: TenantId, limits: Sequence[Limit]) -> float:
        """Count a request against all limits, or against none and give the seconds until it may be made.

        Raises Unavailable when nobody can count.
        """
        ...
