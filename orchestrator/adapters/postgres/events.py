"""Stored events in PostgreSQL, one row per batch. A row has the number of its last event (RT-15)."""

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import ColumnElement, select

from orchestrator.adapters.postgres.pool import Database, dump_json
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import events
from orchestrator.turns.event import Event
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


def write_events(told: Sequence[Event], turn_id: TurnId) -> str:
    """Return events as a row's JSON body. Events of a turn other than `turn_id` include their turn's ID."""
    entries: list[JsonObject] = [{"type": event.type, "payload": event.payload} for event in told]
    for entry, event in zip(entries, told, strict=True):
        if event.turn_id not in (None, turn_id):
            entry["turn_id"] = event.turn_id
    return dump_json(entries)


async def read_events(
    database: Database, session_id: SessionId, *where: ColumnElement[bool], after: int, limit: int
) -> list[Event]:
    """Return up to `limit` of a session's events with numbers above `after`, in order. Raises Unavailable.

    `where`: further conditions on the rows.
    """
    query = (
        select(events)
        .where(events.c.session_id == session_id, events.c.number > after, *where)
        .order_by(events.c.number)
        .limit(limit)
    )
    told = [
        Event(session_id, entry["type"], entry.get("turn_id", row.turn_id), entry["payload"], number, row.at)
        for row in await database.read_all(query)
        for number, entry in number_entries(row.number, row.body)
        if number > after
    ]
    return told[:limit]


def number_entries(last: int, entries: Sequence[JsonObject]) -> Iterator[tuple[int, JsonObject]]:
    """Yield each entry in a row with its number. `last`: the number of the last entry."""
    return enumerate(entries, last - len(entries) + 1)


class PostgresEventLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        mine = events.c.tenant_id == tenant_id
        return await read_events(self._database, session_id, mine, after=after, limit=limit)

    async def last_numbers(
        self, tenant_id: TenantId, session_ids: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        arguments = {"tenant_id": tenant_id, "session_ids": list(session_ids)}
        rows = await self._database.fetch_all(statement("last_events"), arguments)
        return {SessionId(session_id): number for session_id, number in rows}
