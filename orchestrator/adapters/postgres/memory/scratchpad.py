from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import orjson
from sqlalchemy import delete, select

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import any_of, scratchpad_entries
from orchestrator.ports.memory.scratchpad import CAPACITY, Entry
from orchestrator.types import SessionId, TenantId

_COLUMNS = scratchpad_entries.c


class OwnedEntry(NamedTuple):
    tenant_id: TenantId
    session_id: SessionId
    entry: Entry


class PostgresScratchpadArchive:
    """The durable copy of scratchpads, which restores them after Redis has lost data (RT-14)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, owned: Iterable[OwnedEntry]) -> None:
        """Add entries, or replace entries with the same ID.

        Raises NotFound, and saves nothing, if a session no longer exists.
        """
        latest = {
            (one.session_id, one.entry.entry_id): {
                "session_id": one.session_id,
                "tenant_id": one.tenant_id,
                "entry": one.entry.to_json(),
            }
            for one in owned
        }
        if latest:
            entries = orjson.dumps([*latest.values()]).decode()
            await self._database.fetch_all(statement("save_notes"), {"entries": entries})

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

    async def remove(self, named: Sequence[tuple[TenantId, SessionId, str]]) -> None:
        """Delete entries, each given by its tenant, session and ID."""
        if named:
            tenants, sessions, entries = map(list, zip(*named, strict=True))
            arguments = {"tenant_ids": tenants, "session_ids": sessions, "entry_ids": entries}
            await self._database.fetch_all(statement("drop_notes"), arguments)

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(scratchpad_entries).where(
                    _COLUMNS.session_id == session_id, _COLUMNS.tenant_id == tenant_id
                )
            )
