"""Data of past turns in PostgreSQL: frames, journals, signals, side effects and feedback."""

from typing import Any

from sqlalchemy import Row, Select, desc, exists, func, select
from sqlalchemy.dialects.postgresql import insert

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.tables import (
    effects,
    frames,
    journal,
    record_of,
    required,
    row_object,
    sessions,
    turns,
)
from orchestrator.adapters.postgres.tables import feedback as table
from orchestrator.errors import NotFound
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.feedback import Feedback, FeedbackRecord
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId, new_id


class PostgresArchive:
    """Stored data of past turns. Methods can raise Unavailable or NotFound."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def frames(self, tenant_id: TenantId, session_id: SessionId) -> list[JsonObject]:
        """Return each flow's latest frame, newest first, with its `turn_id` and time (`at`)."""
        rows = await self._of_session(tenant_id, session_id, _frames(tenant_id, session_id))
        return [_frame(row) for row in rows]

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        query = _frames(tenant_id, session_id).where(frames.c.frame_id == frame_id)
        rows = await self._of_session(tenant_id, session_id, query)
        if not rows:
            raise NotFound("frame", frame_id)
        return _frame(rows[0])

    async def journal(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        turn_id: TurnId | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        """Return a session's or turn's model and tool calls, newest first.

        Each call is ``{turn_id, key, kind, status, request_hash, duration_ms, at}``, where `at` is the time of
        the first write. Requests and results are omitted, because callers may not be permitted to see them.
        """
        step = journal.c
        query = (
            select(
                step.turn_id, step.key, step.kind, step.status, step.request_hash, step.duration_ms, step.at
            )
            .join_from(turns, journal, step.turn_id == turns.c.turn_id)  # the journal has no index by session
            .where(turns.c.session_id == session_id, turns.c.tenant_id == tenant_id)
            .order_by(desc(turns.c.seq), desc(step.at), desc(step.key))
            .limit(limit)
        )
        if turn_id is not None:
            query = query.where(step.turn_id == turn_id)
        rows = await self._of_session(tenant_id, session_id, query)
        return [row_object(row) for row in rows]

    async def signals(self, tenant_id: TenantId, turn_id: TurnId) -> list[JsonObject]:
        """Return a turn's signals in order (CO-6), each with `source` and `type`. Raises NotFound.

        An unfinished turn has no signals.
        """
        query = select(turns.c.signals).where(turns.c.turn_id == turn_id, turns.c.tenant_id == tenant_id)
        return required(await self._database.read_one(query), "turn", turn_id).signals or []

    async def _of_session(
        self, tenant_id: TenantId, session_id: SessionId, query: Select[*tuple[Any, ...]]
    ) -> list[Row[Any]]:
        owned = select(sessions.c.session_id).where(
            sessions.c.session_id == session_id, sessions.c.tenant_id == tenant_id
        )
        async with self._database.transaction() as connection:
            rows = list((await connection.execute(query)).all())
            if not rows and (await connection.execute(owned)).one_or_none() is None:
                raise NotFound("session", session_id)
        return rows


def _frames(tenant_id: TenantId, session_id: SessionId) -> Select[*tuple[Any, ...]]:
    column = frames.c
    return (
        select(column.body, column.turn_id, column.at)
        .where(column.session_id == session_id, column.tenant_id == tenant_id)
        .order_by(desc(column.at), desc(column.flow_id))
    )


def _frame(row: Row[Any]) -> JsonObject:
    return {**row.body, "turn_id": row.turn_id, "at": row.at.isoformat()}


class PostgresEffects:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        known = select(exists().where(sessions.c.session_id == session_id, sessions.c.tenant_id == tenant_id))
        query = (
            select(effects)
            .where(effects.c.session_id == session_id, effects.c.tenant_id == tenant_id)
            .order_by(effects.c.at)
            .limit(limit)
        )
        async with self._database.transaction() as connection:
            if not (await connection.execute(known)).scalar_one():
                raise NotFound("session", session_id)
            return [record_of(LedgerEntry, row) for row in await connection.execute(query)]


class PostgresFeedback:
    """Feedback on turns. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def give(self, tenant_id: TenantId, turn_id: TurnId, feedback: Feedback) -> FeedbackRecord:
        """Store feedback on a turn, replacing earlier feedback from the same author. Raises NotFound."""
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
        """Return feedback on a session, newest first. Default: feedback on all the tenant's sessions."""
        query = select(table).where(table.c.tenant_id == tenant_id).order_by(desc(table.c.at)).limit(limit)
        if session_id is not None:
            query = query.where(table.c.session_id == session_id)
        return [_record(row) for row in await self._database.read_all(query)]


def _record(row: Row[Any]) -> FeedbackRecord:
    said = record_of(Feedback, row, author=row.author or None)
    return record_of(FeedbackRecord, row, feedback=said)
