"""The durable copy of scratchpads, on PostgreSQL (RT-14)."""

from collections.abc import Collection

import orjson
from sqlalchemy import delete, select

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import scratchpad_entries
from orchestrator.ports.memory.scratchpad import CAPACITY, Entry
from orchestrator.types import SessionId, TenantId

_COLUMNS = scratchpad_entries.c


class PostgresScratchpadArchive:
    """The copy from which a scratchpad is filled again when Redis comes back empty."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, tenant_id: TenantId, session_id: SessionId, entries: tuple[Entry, ...]) -> None:
        """Add entries, or replace those of the same identifiers."""
        if not entries:
            return
        arguments = {
            "session_id": session_id,
            "tenant_id": tenant_id,
            "entries": orjson.dumps([entry.to_json() for entry in entries]).decode(),
        }
        await self._database.fetch_one(statement("save_notes"), arguments)

    async def load(self, tenant_id: TenantId, session_id: SessionId) -> list[Entry]:
        """The least recently saved first, at most `CAPACITY`."""
        arguments = {"session_id": session_id, "tenant_id": tenant_id, "capacity": CAPACITY}
        rows = await self._database.fetch_all(statement("load_notes"), arguments)
        return [Entry.from_json(body) for (body,) in reversed(rows)]

    async def load_all(self, session_ids: Collection[SessionId]) -> dict[SessionId, list[Entry]]:
        """The same of many sessions at once; those without any are left out."""
        query = select(_COLUMNS.session_id, _COLUMNS.body).where(_COLUMNS.session_id.in_(session_ids))
        found: dict[SessionId, list[Entry]] = {}
        for row in await self._database.read_all(query.order_by(_COLUMNS.used_at)):
            found.setdefault(row.session_id, []).append(Entry.from_json(row.body))
        return {session_id: entries[-CAPACITY:] for session_id, entries in found.items()}

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: tuple[str, ...]) -> None:
        arguments = {"session_id": session_id, "tenant_id": tenant_id, "entry_ids": list(entry_ids)}
        await self._database.fetch_all(statement("drop_notes"), arguments)

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(scratchpad_entries).where(
                    _COLUMNS.session_id == session_id, _COLUMNS.tenant_id == tenant_id
                )
            )
