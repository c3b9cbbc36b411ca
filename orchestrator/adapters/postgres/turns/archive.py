"""Reads what turns have left behind, on PostgreSQL. Writing it is the lane's business."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row, Select, desc, select

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.tables import frames, journal, sessions, turns
from orchestrator.errors import NotFound
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


class PostgresArchive:
    """Implements `ports.turns.archive.Archive`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def frames(self, tenant_id: TenantId, session_id: SessionId) -> list[JsonObject]:
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
        step = journal.c
        query = (
            select(step.turn_id, step.key, step.kind, step.status, step.request_hash, step.at)
            .join_from(turns, journal, step.turn_id == turns.c.turn_id)  # found by the session's turns
            .where(turns.c.session_id == session_id, turns.c.tenant_id == tenant_id)
            .order_by(desc(turns.c.seq), desc(step.at), desc(step.key))
            .limit(limit)
        )
        if turn_id is not None:
            query = query.where(step.turn_id == turn_id)
        rows = await self._of_session(tenant_id, session_id, query)
        return [
            {
                "turn_id": row.turn_id,
                "key": row.key,
                "kind": row.kind,
                "status": row.status,
                "request_hash": row.request_hash,
                "at": row.at.isoformat(),
            }
            for row in rows
        ]

    async def signals(self, tenant_id: TenantId, turn_id: TurnId) -> list[JsonObject]:
        query = select(turns.c.signals).where(turns.c.turn_id == turn_id, turns.c.tenant_id == tenant_id)
        row = await self._database.read_one(query)
        if row is None:
            raise NotFound("turn", turn_id)
        return row.signals or []

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
