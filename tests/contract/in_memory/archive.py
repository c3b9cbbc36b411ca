"""Data of past turns in a `MemoryStore`: frames, journal, ledger, feedback and outbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from orchestrator.errors import NotFound
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.event import Event
from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId, new_id
from parley.testing.store import MemoryStore


class MemoryArchive:
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
                "duration_ms": step.duration_ms,
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
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
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
        self._store.outbox_sent.update(dict.fromkeys(ids))


class MemoryEventLog:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        session = self._store.sessions.get(session_id)
        if session is None or session.tenant_id != tenant_id:
            return []
        return session.events[after : after + limit]

    async def last_numbers(
        self, tenant_id: TenantId, session_ids: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        found = [self._store.sessions[name] for name in session_ids if name in self._store.sessions]
        return {one.session_id: len(one.events) for one in found if one.tenant_id == tenant_id}
