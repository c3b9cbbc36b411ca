"""Reads what a session and its domain hold beyond the working state, on PostgreSQL, for `gather_context`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import desc, select

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.tables import flows_archive, frames, records, utterances
from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.types import Json, JsonObject, SessionId, TenantId


class PostgresContextSources:
    """Implements `ports.memory.context.ContextSources`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tasks(self, tenant_id: TenantId, session_id: SessionId, *, limit: int) -> list[JsonObject]:
        """Tasks of the session that were completed, newest first: ``{dact, slots, outputs}``."""
        table = flows_archive.c
        query = (
            select(table.dact, table.body)
            .where(table.session_id == session_id, table.tenant_id == tenant_id, table.state == "Completed")
            .order_by(desc(table.at))
            .limit(limit)
        )
        return [
            {
                "dact": dact,
                "slots": {name: slot["value"] for name, slot in body.get("slots", {}).items()},
                "outputs": body.get("outputs", {}),
            }
            for dact, body in await self._read(query)
        ]

    async def turns(self, tenant_id: TenantId, session_id: SessionId, *, limit: int) -> list[str]:
        """What the user said, newest first."""
        table = utterances.c
        query = (
            select(table.content)
            .where(
                table.session_id == session_id,
                table.tenant_id == tenant_id,
                table.role == "user",
                table.form == "text",
            )
            .order_by(desc(table.epoch), desc(table.position))
            .limit(limit)
        )
        return [row[0] for row in await self._read(query)]

    async def frames(self, tenant_id: TenantId, session_id: SessionId, *, limit: int) -> list[JsonObject]:
        """Rows that the session has displayed, newest first."""
        table = frames.c
        query = (
            select(table.body)
            .where(table.session_id == session_id, table.tenant_id == tenant_id)
            .order_by(desc(table.at))
            .limit(limit)
        )
        return [row for (body,) in await self._read(query) for row in _rows_of(body.get("data"))][:limit]

    async def rows(
        self, tenant_id: TenantId, domain: str, collection: str, *, limit: int
    ) -> list[JsonObject]:
        """Documents of a collection of the domain's services, newest first."""
        table = records.c
        query = (
            select(table.document)
            .where(table.tenant_id == tenant_id, table.domain == domain, table.collection == collection)
            .order_by(desc(table.updated_at))
            .limit(limit)
        )
        return [row[0] for row in await self._read(query)]

    async def _read(self, query: Any) -> list[Any]:
        return list(await self._database.read_all(query))


def _rows_of(data: Json) -> list[JsonObject]:
    """The rows of a frame: a list of objects, wherever it is, or the object itself."""
    if is_object(data):
        nested = [row for value in data.values() for row in _rows_of(value) if is_list(value)]
        return nested or [data]
    return [row for row in data if is_object(row)] if is_list(data) else []
