"""What turns left in a `MemoryStore`: frames, journal, ledger, events, outbox, approvals, feedback."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from orchestrator.errors import NotFound, Refused
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.testing.store import MemoryStore
from orchestrator.turns.approval import (
    APPROVAL_TRANSITIONS,
    ApprovalRecord,
    ApprovalStatus,
    Decision,
    from_unix,
    tell_refusal,
)
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.turns.lease import TurnCommit
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId, new_id


class MemoryApprovals:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: ApprovalStatus | None = None,
        limit: int = 100,
    ) -> list[ApprovalRecord]:
        now = self._store.clock()
        found = [
            record
            for tenant, record in self._store.approvals.values()
            if tenant == tenant_id
            and session_id in {None, record.session_id}
            and status in {None, record.status_at(now)}
        ]
        return found[::-1][:limit]

    async def get(self, tenant_id: TenantId, approval_id: str) -> ApprovalRecord:
        tenant, record = self._store.approvals.get(approval_id, (None, None))
        if tenant != tenant_id or record is None:
            raise NotFound("approval", approval_id)
        return record

    async def decide(self, tenant_id: TenantId, approval_id: str, decision: Decision) -> ApprovalRecord:
        record = decide_approval(self._store, tenant_id, approval_id, decision)
        if record is None:
            raise NotFound("approval", approval_id)
        if record.status is not decision.status:
            now = self._store.clock() if decision.now is None else from_unix(decision.now)
            raise Refused(tell_refusal(record, now))
        return record


def decide_approval(
    store: MemoryStore, tenant_id: TenantId, approval_id: str, decision: Decision
) -> ApprovalRecord | None:
    """Decide if nobody has and there is time; gives the approval as it then stands."""
    tenant, record = store.approvals.get(approval_id, (None, None))
    if tenant != tenant_id or record is None:
        return None
    now = store.clock() if decision.now is None else from_unix(decision.now)
    may = decision.suffices(operator_only=record.operator_only)
    if may and record.status_at(now) is ApprovalStatus.PENDING:
        record = replace(
            record,
            status=decision.status,
            decided_by=decision.decided_by,
            reason=decision.reason,
            decided_at=store.clock(),
        )
        store.approvals[approval_id] = (tenant_id, record)
    return record


def keep_approvals(store: MemoryStore, tenant_id: TenantId, commit: TurnCommit) -> None:
    """Keep what a commit says about approvals: those asked for, and what became of others."""
    now = store.clock()
    for record in commit.approvals:
        store.approvals.setdefault(record.approval_id, (tenant_id, replace(record, created_at=now)))
    for closed in commit.closed_approvals:
        tenant, record = store.approvals.get(closed.approval_id, (None, None))
        if tenant == tenant_id and record and closed.status in APPROVAL_TRANSITIONS[record.status]:
            changed = replace(record, status=closed.status, closed_at=now)
            store.approvals[closed.approval_id] = (tenant_id, changed)


class MemoryArchive:
    """Implements `ports.turns.Archive`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def frames(self, tenant_id: TenantId, session_id: SessionId) -> list[JsonObject]:
        session = self._store.session(tenant_id, session_id)
        kept = reversed(session.frames.values())
        return [
            {**frame.body, "turn_id": turn_id, "at": at.isoformat()}
            for frame, (turn_id, at) in ((frame, session.framed[frame.flow_id]) for frame in kept)
        ]

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        for frame in await self.frames(tenant_id, session_id):
            if frame["frame_id"] == frame_id:
                return frame
        raise NotFound("frame", frame_id)

    async def journal(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        turn_id: TurnId | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        session = self._store.session(tenant_id, session_id)
        steps = [
            {
                "turn_id": turn.turn_id,
                "key": step.key,
                "kind": step.kind,
                "status": step.status.value,
                "request_hash": step.request_hash,
                "at": turn.stepped[step.key].isoformat(),
            }
            for turn in session.turns
            for step in turn.steps.values()
            if turn_id in {None, turn.turn_id}
        ]
        return steps[::-1][:limit]

    async def signals(self, tenant_id: TenantId, turn_id: TurnId) -> list[JsonObject]:
        _, turn = self._store.turn(tenant_id, turn_id)
        return list(turn.signals)


class MemoryEffects:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        self._store.session(tenant_id, session_id)
        own = [entry for key, entry in self._store.effects.items() if key[0] == session_id]
        return sorted(own, key=lambda entry: entry.at or self._store.clock())[:limit]


class MemoryFeedback:
    """Implements `ports.turns.FeedbackStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._given: dict[tuple[TenantId, TurnId, str | None], FeedbackRecord] = {}

    async def give(self, tenant_id: TenantId, turn_id: TurnId, feedback: Feedback) -> FeedbackRecord:
        session, _ = self._store.turn(tenant_id, turn_id)
        place = (tenant_id, turn_id, feedback.author)
        earlier = self._given.pop(place, None)
        feedback_id = new_id("feedback") if earlier is None else earlier.feedback_id
        record = FeedbackRecord(feedback_id, session.session_id, turn_id, feedback, self._store.clock())
        self._given[place] = record
        return record

    async def list(
        self, tenant_id: TenantId, *, session_id: SessionId | None = None, limit: int = 100
    ) -> list[FeedbackRecord]:
        newest = [record for (owner, _, _), record in reversed(self._given.items()) if owner == tenant_id]
        return [one for one in newest if session_id in {None, one.session_id}][:limit]


class MemoryOutbox:
    """Implements `ports.outbox.Outbox`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
        """See `Outbox`."""
        now, sent = self._store.clock(), self._store.outbox_sent
        waited = now - timedelta(seconds=again_after_s)
        due = [
            message
            for message in self._store.outbox
            if message.kind in kinds and (message.id not in sent or (sent[message.id] or now) < waited)
        ][:limit]
        sent.update((message.id, now) for message in due)
        return due

    async def acknowledge(self, ids: list[int]) -> None:
        """See `Outbox`."""
        self._store.outbox_sent.update(dict.fromkeys(ids))
