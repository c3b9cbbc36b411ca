"""The durable event log on PostgreSQL (RT-15); live events are another adapter's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import select

from orchestrator.adapters.postgres.pool import Database, translated
from orchestrator.adapters.postgres.rows import event_of
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import events
from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TenantId


class PostgresEventLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        query = (
            select(events)
            .where(
                events.c.session_id == session_id, events.c.number > after, events.c.tenant_id == tenant_id
            )
            .order_by(events.c.number)
            .limit(limit)
        )
        return [event_of(row) for row in await self._database.read_all(query)]

    async def last_numbers(
        self, tenant_id: TenantId, session_ids: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        arguments = {"tenant_id": tenant_id, "session_ids": list(session_ids)}
        with translated():
            rows = await self._database.fetch_all(statement("last_events"), arguments)
        return {SessionId(session_id): number for session_id, number in rows}
