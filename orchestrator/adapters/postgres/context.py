"""What a session and its domain hold beyond the working state, on PostgreSQL, for `gather_context`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import desc, select

from orchestrator.adapters.postgres.models import flows_archive, frames, preferences, records, utterances
from orchestrator.adapters.postgres.pool import Database
from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.ports.context import ContextQuestion, Finding
from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId


class PostgresContextSources:
    """Implements `ports.context.ContextSources`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def tasks(self, tenant_id: TenantId, session_id: SessionId, *, limit: int) -> list[JsonObject]:
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
        table = records.c
        query = (
            select(table.document)
            .where(table.tenant_id == tenant_id, table.domain == domain, table.collection == collection)
            .order_by(desc(table.updated_at))
            .limit(limit)
        )
        return [row[0] for row in await self._read(query)]

    async def _read(self, query: Any) -> list[Any]:
        async with self._database.transaction() as connection:
            return list((await connection.execute(query)).all())


class PreferenceMemory:
    """Implements `ports.context.MemorySearch` with the user's preferences alone."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def search(
        self, tenant_id: TenantId, user_id: UserId | None, question: ContextQuestion, *, limit: int
    ) -> list[Finding]:
        """What the user usually gives for the asked slots; of the same task before that of others."""
        if user_id is None or not question.slots:
            return []
        table = preferences.c
        query = select(table.key, table.value).where(table.tenant_id == tenant_id, table.user_id == user_id)
        async with self._database.transaction() as connection:
            known = {row.key: row.value for row in await connection.execute(query)}
        found: list[Finding] = []
        for key, kept in known.items():
            dact, _, slot = key.rpartition(".")
            if slot in question.slots:
                value = kept["value"] if is_object(kept) and "value" in kept else kept
                told = f"The user usually gives {value} for {slot.replace('_', ' ')}."
                found.append(Finding("memory", told, {slot: value}, 2.0 if dact == question.dact else 1.0))
        return sorted(found, key=lambda finding: -finding.score)[:limit]


def _rows_of(data: Json) -> list[JsonObject]:
    """The rows of a frame: a list of objects, wherever it is, or the object itself."""
    if is_object(data):
        nested = [row for value in data.values() for row in _rows_of(value) if is_list(value)]
        return nested or [data]
    return [row for row in data if is_object(row)] if is_list(data) else []
