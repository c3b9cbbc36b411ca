"""Sessions: create, list, close, read history and earlier states, step back, branch (ST-2, ST-4)."""

from __future__ import annotations

from typing import Protocol

from orchestrator.turns.turn import IfBusy, SessionRecord
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, UserId


class Sessions(Protocol):
    """Sessions as clients and operators see them. Every method raises Unavailable."""

    async def create(
        self,
        tenant_id: TenantId,
        domain: str,
        *,
        session_id: SessionId | None = None,
        user_id: UserId | None = None,
        if_busy: IfBusy = IfBusy.ENQUEUE,
        webhook: str | None = None,
    ) -> SessionRecord:
        """Make a session; an existing `session_id` of the same tenant and domain is returned as it is.

        Raises Refused when the identifier is taken by another tenant or domain.
        """
        ...

    async def get(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        """With its working state as an object. Raises NotFound."""
        ...

    async def owner(self, tenant_id: TenantId, session_id: SessionId) -> UserId | None:
        """Whose session it is, where it was made for a user. Raises NotFound."""
        ...

    async def list(
        self, tenant_id: TenantId, *, user_id: UserId | None = None, limit: int = 100
    ) -> list[SessionRecord]:
        """Newest activity first, without states; with `user_id` this user's only."""
        ...

    async def close(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        """Take no more turns, and make the checkpoint: the whole state, kept with its epoch."""
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
        """The last utterances, oldest first: ``{turn_id, seq, role, form, content, at}``.

        `before`: of turns with a lower `seq` only, to page back. `until`: of this epoch and earlier ones only.
        """
        ...

    async def plan(self, tenant_id: TenantId, session_id: SessionId) -> JsonObject:
        """The session's latest plan with its revisions, oldest first (PL-6). Raises NotFound.

        ``{plan_id, dact, goal, state, reason, revision, turn_id, at, steps, progress, …, revisions}``;
        a revision is ``{number, outcome, why, turn_id, at, steps, progress, …}``.
        """
        ...

    async def state_at(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> JsonObject:
        """The working state as it was after `epoch`, rebuilt from snapshot and diffs. Raises NotFound."""
        ...

    async def release_lane(
        self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch, signed: JsonObject
    ) -> SessionRecord:
        """Take the lane from its holder: the turn in hand is queued again, and what the holder does is fenced off.

        `signed`: who does it and why, kept in the event log. Raises NotFound; Refused when nobody holds the lane, or
        the session is not at this epoch.
        """
        ...

    async def rollback(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> SessionRecord:
        """Make the state of `epoch` current again, as a new epoch. Raises NotFound, SessionBusy."""
        ...

    async def branch(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        epoch: Epoch | None = None,
        branch_id: SessionId | None = None,
    ) -> SessionRecord:
        """Make a session that goes on from `epoch` of this one, by default the present one, all at once (ST-4).

        It has what this one had by then; its first epoch follows. A `branch_id` that was branched off alike is returned
        as it is. Raises NotFound, and Refused when the identifier is taken.
        """
        ...
