"""Sessions of a `MemoryStore`, with the same rules as `adapters.postgres.sessions`."""

from __future__ import annotations

from dataclasses import replace

import orjson

from orchestrator.dialogue.storage.serialization import diff
from orchestrator.dialogue.storage.upgrade import keep_labels
from orchestrator.errors import NotFound, SessionBusy
from orchestrator.turns.plan import show_plan, show_revision
from orchestrator.turns.repair import require_held
from orchestrator.turns.turn import IfBusy, SessionRecord, TurnStatus
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, UserId
from parley.testing.branching import branch_session
from parley.testing.store import MemorySession, MemoryStore, Revision, record_of


class MemorySessions:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

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
        session = self._store.open_session(
            tenant_id,
            domain,
            session_id=session_id,
            user_id=user_id,
            if_busy=if_busy,
            timezone=timezone,
            locale=locale,
        )
        return _record(session)

    async def get(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        session = self._store.session(tenant_id, session_id)
        return _record(session, None if session.state is None else orjson.loads(session.state))

    async def owner(self, tenant_id: TenantId, session_id: SessionId) -> UserId | None:
        return self._store.session(tenant_id, session_id).user_id

    async def list(
        self, tenant_id: TenantId, *, user_id: UserId | None = None, limit: int = 100
    ) -> list[SessionRecord]:
        own = [
            session
            for session in self._store.sessions.values()
            if session.tenant_id == tenant_id and user_id in {None, session.user_id}
        ]
        newest = sorted(own, key=lambda session: session.updated_at, reverse=True)
        return [_record(session) for session in newest[:limit]]

    async def close(self, tenant_id: TenantId, session_id: SessionId) -> SessionRecord:
        session = self._store.session(tenant_id, session_id)
        session.closed, session.updated_at = True, self._store.clock()
        kept = session.revisions.get(session.epoch)
        if kept is not None and kept.snapshot is None and session.state is not None:
            session.revisions[session.epoch] = replace(kept, snapshot=orjson.loads(session.state))
        return await self.get(tenant_id, session_id)

    async def history(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        before: int | None = None,
        until: Epoch | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        said = self._store.session(tenant_id, session_id).utterances
        epochs = {
            turn: self._store.turn(tenant_id, turn)[1].epoch for turn in {line["turn_id"] for line in said}
        }
        return [
            dict(line)
            for line in said
            if (before is None or line["seq"] < before)
            and (until is None or (epochs[line["turn_id"]] or 0) <= until)
        ][-limit:]

    async def plan(self, tenant_id: TenantId, session_id: SessionId) -> JsonObject:
        plans = self._store.session(tenant_id, session_id).plans.values()
        if not plans:
            raise NotFound("plan of session", session_id)
        kept = max(plans, key=lambda plan: plan.at)
        revisions = [
            show_revision(revision, turn_id, at.isoformat()) for revision, turn_id, at in kept.revisions
        ]
        return show_plan(kept.record, kept.turn_id, kept.at.isoformat(), revisions)

    async def state_at(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> JsonObject:
        return self._store.session(tenant_id, session_id).state_at(epoch)

    async def release_lane(
        self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch, signed: JsonObject
    ) -> SessionRecord:
        session = self._store.session(tenant_id, session_id)
        require_held(held=session.lease_owner is not None, moved=session.epoch != epoch)
        session.lease_owner = session.lease_until = None
        session.lease_token += 1
        session.updated_at = self._store.clock()
        for turn in session.turns:
            if turn.status is TurnStatus.RUNNING:
                turn.status, turn.attempts = TurnStatus.QUEUED, turn.attempts - 1
        self._store.sign(session, signed)
        return await self.get(tenant_id, session_id)

    async def rollback(self, tenant_id: TenantId, session_id: SessionId, epoch: Epoch) -> SessionRecord:
        session = self._store.session(tenant_id, session_id)
        if session.pending > 0:
            raise SessionBusy("The session has unfinished turns; roll it back when they are done.")
        wanted = await self.state_at(tenant_id, session_id, epoch)
        present = await self.state_at(tenant_id, session_id, session.epoch)
        wanted = keep_labels(wanted, present)
        session.epoch = Epoch(session.epoch + 1)
        session.state, session.updated_at = orjson.dumps(wanted), self._store.clock()
        session.revisions[session.epoch] = Revision(diff(present, wanted), wanted)
        return await self.get(tenant_id, session_id)

    async def branch(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        epoch: Epoch | None = None,
        branch_id: SessionId | None = None,
    ) -> SessionRecord:
        return _record(branch_session(self._store, tenant_id, session_id, epoch=epoch, branch_id=branch_id))


def _record(session: MemorySession, state: JsonObject | None = None) -> SessionRecord:
    return record_of(SessionRecord, session, state=state)
