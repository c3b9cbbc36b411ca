"""The port for session management by clients and operators (ST-2, ST-4)."""

from __future__ import annotations

from typing import Protocol

from orchestrator.turns.turn import IfBusy, SessionRecord
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, UserId


class Sessions(Protocol):
    """Session management for clients and operators. Every method can raise Unavailable."""

    async def create(
        self,
        tenant_id: TenantId,
        domain: str,
        *,
        session_id: SessionId | None = None,
        user_id: UserId | None = None,
        if_busy: IfBusy = IfBusy.UNDERSTAND,
        webhook: str | None = None,
        timezone: str | None = None,
        locale: str | None = None,
    ) -> SessionRecord:
        """Create a session, or return the existing session with this ID.

        `webhook`: URL that receives the session's events. `timezone` and `locale` each default to the value in
        the user's latest session that has one. Raises Refused if the ID belongs to another tenant or domain.
        """
        ...

    async def get(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        """Return a session with its working state. Raises NotFound."""
        ...

    async def owner(self, tenant_id: TenantId, session_id: SessionId) -> UserId | None:
        """Return the session's user, or None for an anonymous session. Raises NotFound."""
        ...

    async def list(
        self, tenant_id: TenantId, *, user_id: UserId | None = None, limit: int = 100
    ) -> list[SessionRecord]:
        """Return a tenant's or user's sessions without their states, most recently active first."""
        ...

    async def close(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        """Close a session and store a checkpoint of its full state. Raises NotFound."""
        ...

    async def history(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        before: int | None = None,
        until: Epoch | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        """Return the latest utterances as ``{turn_id, seq, role, form, content, at}``, oldest first.

        `before`: only utterances of turns with a lower `seq`. `until`: only utterances up to this epoch.
        """
        ...

    async def plan(self, tenant_id: TenantId, session_id: SessionId) -> JsonObject:
        """Return the session's latest plan with its revisions, oldest first (PL-6). Raises NotFound.

        The plan is ``{plan_id, dact, goal, state, reason, revision, turn_id, at, steps, progress, …,
        revisions}``. Each revision is ``{number, outcome, why, turn_id, at, steps, progress, …}``.
        """
        ...

    async def state_at(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> JsonObject:
        """Return the working state at `epoch`, rebuilt from a snapshot and diffs. Raises NotFound."""
        ...

    async def release_lane(
        self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch, signed: JsonObject
    ) -> SessionRecord:
        """Release the session lane from its holder, which can no longer commit, and requeue the running turn.

        `signed`: the operator and the reason, stored in the event log. Raises NotFound, or Refused if the
        lane is free or the session is not at this epoch.
        """
        ...

    async def rollback(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> SessionRecord:
        """Restore the state at `epoch` as a new epoch. Raises NotFound, or SessionBusy while turns are unfinished."""
        ...

    async def branch(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        epoch: Epoch | None = None,
        branch_id: SessionId | None = None,
    ) -> SessionRecord:
        """Fork the session atomically at `epoch`, or at its current epoch (ST-4).

        The fork has a copy of the session's data up to this epoch and continues with the next epoch. Repeating
        the call with the same `branch_id` returns the existing fork.

        Raises NotFound, or Refused if another session has the ID.
        """
        ...
