"""Feedback on turns, in memory."""

from __future__ import annotations

from orchestrator.testing.store import MemoryStore
from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.types import SessionId, TenantId, TurnId, new_id


class MemoryFeedback:
    """Implements `ports.turns.feedback.FeedbackStore`."""

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
