"""The durable copy of scratchpads, on PostgreSQL (RT-14)."""

from __future__ import annotations

from sqlalchemy import delete, desc, func, select
from sqlalchemy.dialects.postgresql import insert

from orchestrator.adapters.postgres.models_internal import scratchpad_entries
from orchestrator.adapters.postgres.pool import Database
from orchestrator.ports.scratchpad import CAPACITY, Entry
from orchestrator.types import SessionId, TenantId

_COLUMNS = scratchpad_entries.c


class PostgresScratchpadArchive:
    """Implements `ports.scratchpad.ScratchpadArchive`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(self, tenant_id: TenantId, session_id: SessionId, entries: tuple[Entry, ...]) -> None:
        if not entries:
            return
        values = [
            {
                "tenant_id": tenant_id,
                "session_id": session_id,
                "entry_id": entry.entry_id,
                "body": entry.to_json(),
            }
            for entry in entries
        ]
        statement = insert(scratchpad_entries).values(values)
        statement = statement.on_conflict_do_update(
            index_elements=[_COLUMNS.session_id, _COLUMNS.entry_id],
            set_={"body": statement.excluded.body, "used_at": func.clock_timestamp()},
        )
        async with self._database.transaction() as connection:
            await connection.execute(statement)

    async def load(self, tenant_id: TenantId, session_id: SessionId) -> list[Entry]:
        query = (
            select(_COLUMNS.body)
            .where(_COLUMNS.session_id == session_id, _COLUMNS.tenant_id == tenant_id)
            .order_by(desc(_COLUMNS.used_at))
            .limit(CAPACITY)
        )
        async with self._database.transaction() as connection:
            rows = (await connection.execute(query)).scalars().all()
        return [Entry.from_json(body) for body in reversed(rows)]

    async def remove(self, tenant_id: TenantId, session_id: SessionId, entry_ids: tuple[str, ...]) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(scratchpad_entries).where(
                    _COLUMNS.session_id == session_id,
                    _COLUMNS.tenant_id == tenant_id,
                    _COLUMNS.entry_id.in_(entry_ids),
                )
            )

    async def forget(self, tenant_id: TenantId, session_id: SessionId) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(scratchpad_entries).where(
                    _COLUMNS.session_id == session_id, _COLUMNS.tenant_id == tenant_id
                )
            )
