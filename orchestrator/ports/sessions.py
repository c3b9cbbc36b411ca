"""Sessions: create, list, close, read history and earlier states, roll back, fork (ST-2, ST-4)."""

from __future__ import annotations

from typing import Protocol

from orchestrator.turns.turn import IfBusy, SessionRecord
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, UserId


class Sessions(Protocol):
    """Sessions for clients and operators. Every method raises Unavailable."""

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
        """Create a session, or return the existing one of the same tenant and domain.

        By default, `timezone` and `locale` are those of the user's latest session that has them.

        Raises Refused if another tenant or domain has the ID.
        """
        ...

    async def get(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        """Return a session with its decoded working state. Raises NotFound."""
        ...

    async def owner(self, tenant_id: TenantId, session_id: SessionId) -> UserId | None:
        """Return the session's user, if any. Raises NotFound."""
        ...

    async def list(
        self, tenant_id: TenantId, *, user_id: UserId | None = None, limit: int = 100
    ) -> list[SessionRecord]:
        """Return sessions without states, most recently active first; with `user_id` only this user's."""
        ...

    async def close(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        """Close a session and store a checkpoint: the full state with its epoch."""
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
        """Return the last utterances, oldest first: ``{turn_id, seq, role, form, content, at}``.

        `before`: only turns with a lower `seq`, for paging. `until`: only this and earlier epochs.
        """
        ...

    async def plan(self, tenant_id: TenantId, session_id: SessionId) -> JsonObject:
        """Return the session's latest plan with its revisions, oldest first (PL-6). Raises NotFound.

        ``{plan_id, dact, goal, state, reason, revision, turn_id, at, steps, progress, …, revisions}``; a
        revision is ``{number, outcome, why, turn_id, at, steps, progress, …}``.
        """
        ...

    async def state_at(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> JsonObject:
        """Return the working state after `epoch`, rebuilt from snapshot and diffs. Raises NotFound."""
        ...

    async def release_lane(
        self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch, signed: JsonObject
    ) -> SessionRecord:
        """Free the lane from its holder, which is fenced off, and requeue the running turn.

        `signed`: the operator and reason, stored in the event log. Raises NotFound; Refused if the lane is
        free, or the session is not at this epoch.
        """
        ...

    async def rollback(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> SessionRecord:
        """Restore the state of `epoch` as a new epoch. Raises NotFound, SessionBusy."""
        ...

    async def branch(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        epoch: Epoch | None = None,
        branch_id: SessionId | None = None,
    ) -> SessionRecord:
        """Fork the session at `epoch`, by default the current one, atomically (ST-4).

        The fork has everything up to then; its first epoch follows. An existing `branch_id` forked
        identically is returned. Raises NotFound, and Refused if the ID is taken.
        """
        ...
