from collections.abc import Collection

from sqlalchemy import delete, select

from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import any_of, scratchpad_entries
from orchestrator.ports.memory.scratchpad import CAPACITY, Entry
from orchestrator.types import SessionId, TenantId

_COLUMNS = scratchpad_entries.c


class PostgresScratchpadArchive:
    """The durable copy of scratchpads, which restores them after Redis has lost data (RT-14)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, tenant_id: TenantId, session_id: SessionId, entries: tuple[Entry, ...]) -> None:
        """Add entries, or replace entries with the same ID. Raises NotFound if the session no longer exists."""
        latest = {entry.entry_id: entry.to_json() for entry in entries}
        arguments = {
            "session_id": session_id,
            "tenant_id": tenant_id,
            "entries": dump_json([*latest.values()]),
        }
        await self._database.fetch_all(statement("save_notes"), arguments)

    async def load(self, tenant_id: TenantId, session_id: SessionId) -> list[Entry]:
        """Return up to `CAPACITY` entries, least recently saved first."""
        arguments = {"session_id": session_id, "tenant_id": tenant_id, "capacity": CAPACITY}
        rows = await self._database.fetch_all(statement("load_notes"), arguments)
        return [Entry.from_json(body) for (body,) in reversed(rows)]

    async def load_all(self, session_ids: Collection[SessionId]) -> dict[SessionId, list[Entry]]:
        """Return up to `CAPACITY` entries per session, least recently saved first.

        Sessions without entries are omitted.
        """
        query = select(_COLUMNS.session_id, _COLUMNS.body).where(_COLUMNS.session_id == any_of(session_ids))
        found: dict[SessionId, list[Entry]] = {}
        for row in await self._database.read_all(query.order_by(_COLUMNS.used_at)):
            found.setdefault(row.session_id, []).append(Entry.from_json(row.body))
        return {session_id: entries[-CAPACITY:] for session_id, entries in found.items()}

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: Collection[str]) -> None:
        arguments = {"session_id": session_id, "tenant_id": tenant_id, "entry_ids": list(entry_ids)}
        await self._database.fetch_all(statement("drop_notes"), arguments)

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        mine = (_COLUMNS.session_id == session_id, _COLUMNS.tenant_id == tenant_id)
        await self._database.write(delete(scratchpad_entries).where(*mine))
