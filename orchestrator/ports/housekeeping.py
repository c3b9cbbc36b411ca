"""What the flows of housekeeping ask of the store: what is idle or old, and its removal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orchestrator.types import Epoch, Json, JsonObject, SessionId, TenantId, UserId


@dataclass(frozen=True, slots=True)
class SessionState:
    """A session and its working state, read at one moment."""

    tenant_id: TenantId
    session_id: SessionId
    user_id: UserId | None
    epoch: Epoch
    state: JsonObject
    domain: str = ""


@dataclass(frozen=True, slots=True)
class SlotUse:
    """How often a user gave this value for this slot in tasks that were completed."""

    dact: str
    slot: str
    value: Json
    times: int


class Housekeeping(Protocol):
    """What only housekeeping reads and removes, over all tenants. Every method raises Unavailable."""

    async def state(self, tenant_id: TenantId, session_id: SessionId) -> SessionState | None:
        """None: the session is not there, or nothing has happened in it."""
        ...

    async def states(self, *, quiet_for_s: float, after: str = "", limit: int = 500) -> list[SessionState]:
        """Open sessions of all tenants with tasks on their stack or approvals, quiet for so long, by
        identifier.
        """
        ...

    async def idle(self, *, idle_s: float, limit: int = 500) -> list[tuple[TenantId, SessionId]]:
        """Open sessions without activity for so long."""
        ...

    async def expired(self, *, retention_s: float, limit: int = 500) -> list[tuple[TenantId, SessionId]]:
        """Sessions closed for so long."""
        ...

    async def delete_session(self, tenant_id: TenantId, session_id: SessionId) -> None:
        """Remove a closed session with everything it left."""
        ...

    async def prune_archive(self, *, keep_flows: int, keep_epochs: int, limit: int = 5000) -> dict[str, int]:
        """Remove archived flows and old epochs beyond so many per session; counts by table (ST-3)."""
        ...

    async def prune_runtime(self, *, older_than_s: float, limit: int = 5000) -> dict[str, int]:
        """Remove events, journal entries, sent messages, runs and firings that are old; counts by table."""
        ...

    async def slot_uses(self, tenant_id: TenantId, user_id: UserId) -> list[SlotUse]:
        """The user's values of completed tasks, with how often each was used."""
        ...

    async def unsummarised(
        self, *, idle_s: float, least_turns: int, limit: int = 100
    ) -> list[tuple[TenantId, SessionId, Epoch]]:
        """Open sessions at rest for so long with at least so many turns that no summary covers."""
        ...


class Proposals(Protocol):
    """How Internal flows suggest a change of a session that they do not hold."""

    async def propose(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        kind: str,
        change: JsonObject,
        *,
        epoch: Epoch,
        flow: str,
        run_id: str,
    ) -> str:
        """Leave a proposal for the session's lane; the turn that will decide it. The same run proposes
        a kind once (IF-12).
        """
        ...
