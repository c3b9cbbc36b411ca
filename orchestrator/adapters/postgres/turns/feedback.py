"""Feedback on turns, on PostgreSQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, desc, func, select
from sqlalchemy.dialects.postgresql import insert

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.rows import record_of
from orchestrator.adapters.postgres.tables import feedback as table
from orchestrator.adapters.postgres.tables import turns
from orchestrator.errors import NotFound
from orchestrator.turns.feedback import Feedback, FeedbackRecord, Rating
from orchestrator.types import SessionId, TenantId, TurnId, new_id


class PostgresFeedback:
    """Implements `ports.turns.feedback.FeedbackStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def give(self, tenant_id: TenantId, turn_id: TurnId, feedback: Feedback) -> FeedbackRecord:
        owner = select(turns.c.session_id).where(turns.c.turn_id == turn_id, turns.c.tenant_id == tenant_id)
        async with self._database.transaction() as connection:
            session_id = (await connection.execute(owner)).scalar_one_or_none()
            if session_id is None:
                raise NotFound("turn", turn_id)
            said = {
                "rating": None if feedback.rating is None else feedback.rating.value,
                "comment": feedback.comment,
                "correction": feedback.correction,
            }
            facts = {
                "feedback_id": new_id("feedback"),
                "tenant_id": tenant_id,
                "session_id": session_id,
                "turn_id": turn_id,
                "author": feedback.author or "",
            }
            giving = insert(table).values(**facts, **said)
            giving = giving.on_conflict_do_update(
                constraint="feedback_turn_id_author_key", set_={**said, "at": func.clock_timestamp()}
            )
            return _record((await connection.execute(giving.returning(table))).one())

    async def list(
        self, tenant_id: TenantId, *, session_id: SessionId | None = None, limit: int = 100
    ) -> list[FeedbackRecord]:
        query = select(table).where(table.c.tenant_id == tenant_id).order_by(desc(table.c.at)).limit(limit)
        if session_id is not None:
            query = query.where(table.c.session_id == session_id)
        return [_record(row) for row in await self._database.read_all(query)]


def _record(row: Row[Any]) -> FeedbackRecord:
    rating = None if row.rating is None else Rating(row.rating)
    said = record_of(Feedback, row, rating=rating, author=row.author or None)
    return record_of(FeedbackRecord, row, feedback=said)
