"""Take what was forgotten out of all that is stored, on PostgreSQL (CO-4).

A session is rewritten under the lock of its lane while nobody is at work on it. Only texts change: every row and
every member of its JSON stays, so that a state can still be rebuilt from its diffs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Row,
    Select,
    Table,
    Text,
    func,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.lane_lock import lock_lane
from orchestrator.adapters.postgres.memory.preferences import ERASED, TO_BE_ERASED
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.rows import record_of
from orchestrator.adapters.postgres.states import fold
from orchestrator.adapters.postgres.tables import (
    internal_items,
    internal_runs,
    metadata,
    preferences,
    sessions,
    utterances,
)
from orchestrator.memory.forgetting import FORGOTTEN, Unwanted, tells
from orchestrator.memory.user_memory import SESSION_OWNER
from orchestrator.ports.memory.preferences import EVERYTHING, Preference, Source
from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId

_COLUMNS = preferences.c
_LEASED = text("SELECT FROM lanes WHERE session_id = :session AND lease_until >= clock_timestamp()")
_AT_WORK = text("SELECT FROM internal_runs WHERE session_id = :session AND finished_at IS NULL LIMIT 1")
_OWN_DOCUMENTS = text(
    "SELECT document_id, concat_ws(E'\\n', title, body) AS words FROM documents WHERE tenant_id = :tenant"
    " AND (user_id = :owner OR origin ->> 'session_id' = ANY(:sessions))"
)
_DROP_DOCUMENT = text("DELETE FROM documents WHERE tenant_id = :tenant AND document_id = :document")
_ROW: ColumnElement[str] = literal_column("ctid::text", Text)
_HERE = text("ctid = CAST(:row_id AS tid)")


class PostgresForgetting:
    """The tool `forgetting` of Internal flows, over all tenants. Every method raises Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def owners(self, until: float) -> list[tuple[TenantId, UserId]]:
        """List whose memory holds something that was forgotten by then and may still stand elsewhere."""
        query = select(_COLUMNS.tenant_id, _COLUMNS.user_id).where(_forgotten(until)).distinct()
        return [
            (TenantId(row.tenant_id), UserId(row.user_id)) for row in await self._database.read_all(query)
        ]

    async def forgotten(self, tenant_id: TenantId, owner: UserId, until: float) -> list[Preference]:
        """List what that is."""
        query = select(preferences).where(*_of(tenant_id, owner), _forgotten(until))
        return _read(await self._database.read_all(query))

    async def sessions_of(self, tenant_id: TenantId, owner: UserId) -> list[SessionId]:
        """List the sessions of a user, or the one that a memory without a user belongs to."""
        facts = sessions.c
        theirs = or_(facts.user_id == owner, func.concat(SESSION_OWNER, facts.session_id) == owner)
        query = select(facts.session_id).where(facts.tenant_id == tenant_id, theirs)
        return [SessionId(row.session_id) for row in await self._database.read_all(query)]

    async def take_out(self, tenant_id: TenantId, session_id: SessionId, unwanted: Unwanted) -> bool:
        """Rewrite all that a session has left; False, and nothing done, while somebody is at work on it."""
        async with self._database.transaction() as connection:
            if await lock_lane(connection, session_id, tenant_id) is None:
                return True
            for question in (_LEASED, _AT_WORK):
                if (await connection.execute(question, {"session": session_id})).first() is not None:
                    return False
            await fold(
                connection, session_id
            )  # also tells every worker that what it remembers is another state
            for table in metadata.tables.values():
                if "session_id" in table.c:
                    await _rewrite(connection, table, table.c.session_id == session_id, unwanted)
            runs = select(internal_runs.c.run_id).where(internal_runs.c.session_id == session_id)
            await _rewrite(connection, internal_items, internal_items.c.run_id.in_(runs), unwanted)
            if unwanted.everything:
                said = utterances.c.session_id == session_id
                await connection.execute(update(utterances).where(said).values(content=FORGOTTEN))
        return True

    async def drop_documents(
        self, tenant_id: TenantId, owner: UserId, sessions: list[SessionId], unwanted: Unwanted
    ) -> int:
        """Delete the documents of a user, and those made of their sessions, that tell it; how many."""
        names = {"tenant": tenant_id, "owner": owner, "sessions": list(sessions)}
        async with self._database.transaction() as connection:
            found = (await connection.execute(_OWN_DOCUMENTS, names)).all()
            gone = [one.document_id for one in found if unwanted.everything or unwanted.is_in(one.words)]
            for document_id in gone:
                await connection.execute(_DROP_DOCUMENT, {"tenant": tenant_id, "document": document_id})
        return len(gone)

    async def finish(self, tenant_id: TenantId, owner: UserId, until: float) -> None:
        """Erase it from the memory as well, with what was inferred that tells the same. Of slots and habits the
        key is kept, so that old tasks do not bring them back.
        """
        async with self._database.transaction() as connection:
            mine = (*_of(tenant_id, owner), _forgotten(until))
            gone = _read((await connection.execute(select(preferences).where(*mine))).all())
            inferred = (*_of(tenant_id, owner), _COLUMNS.source.in_((Source.HABIT, Source.INFERRED)))
            left = _read((await connection.execute(select(preferences).where(*inferred))).all())
            same = [one.key for one in left if tells(one, gone)]
            await connection.execute(preferences.delete().where(*inferred, _COLUMNS.key.in_(same)))
            lasting = or_(_COLUMNS.kind != "note", _COLUMNS.key == EVERYTHING)
            blank: JsonObject = {"source": ERASED, "value": None, "text": "", "labels": [], "origin": {}}
            await connection.execute(update(preferences).where(*mine, lasting).values(blank))
            await connection.execute(preferences.delete().where(*mine))


def _read(rows: Sequence[Row[Any]]) -> list[Preference]:
    """Read what was forgotten like what is known: its source says nothing any more."""
    return [
        record_of(Preference, row, source=Source.EXPLICIT, updated_at=row.updated_at.timestamp())
        for row in rows
    ]


def _of(tenant_id: TenantId, owner: UserId) -> tuple[Any, Any]:
    return _COLUMNS.tenant_id == tenant_id, _COLUMNS.user_id == owner


def _forgotten(until: float) -> Any:
    return (_COLUMNS.source == TO_BE_ERASED) & (_COLUMNS.updated_at <= func.to_timestamp(until))


async def _rewrite(connection: AsyncConnection, table: Table, where: Any, unwanted: Unwanted) -> None:
    """Write those rows of a table anew in which a text or JSON tells it."""
    columns = [column for column in table.c if isinstance(column.type, Text | JSON | JSONB)]
    found: Select[Any] = select(_ROW.label("row_id"), *columns).where(where)
    rows = (await connection.execute(found)).all()
    for row in rows:
        changed = {
            column.name: after
            for column in columns
            if (after := _take_out(column, before := getattr(row, column.name), unwanted)) != before
        }
        if changed:
            here = _HERE.bindparams(row_id=row.row_id)
            await connection.execute(update(table).where(here).values(changed))


def _take_out(column: Column[Any], value: Json, unwanted: Unwanted) -> Json:
    """A state and its diffs are JSON in a column of text, written as the runtime writes them."""
    if isinstance(value, str) and value[:1] in {"{", "["} and not isinstance(column.type, JSON):
        try:
            body = orjson.loads(value)
        except orjson.JSONDecodeError:
            return unwanted.take_out(value, column.name)
        after = unwanted.take_out(body)
        return value if after == body else orjson.dumps(after).decode()
    return unwanted.take_out(value, column.name)
