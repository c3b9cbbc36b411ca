"""Remove forgotten content from PostgreSQL (CO-4).

A session is rewritten under its lane's lock while no turn is running. Only its texts change: all of its rows and JSON
members stay, so that a state can still be rebuilt from its diffs.
"""

from dataclasses import replace
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Select,
    Table,
    Text,
    case,
    false,
    func,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.lane_lock import TOKEN_STEP, lock_lane
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import run_named
from orchestrator.adapters.postgres.states import fold
from orchestrator.adapters.postgres.tables import (
    forgotten_preferences,
    internal_items,
    internal_runs,
    lanes,
    metadata,
    preferences,
    record_of,
    sessions,
    utterances,
)
from orchestrator.memory.forgetting import FORGOTTEN, Unwanted, tells
from orchestrator.ports.memory.preferences import EVERYTHING, Preference, Source
from orchestrator.types import Json, JsonObject, SessionId, TenantId, UserId

_COLUMNS = preferences.c
_GONE = forgotten_preferences.c
_FACTS = (sessions, lanes)
"""Tables without conversation content."""
_LEASED = text("SELECT FROM lanes WHERE session_id = :session AND lease_until >= clock_timestamp()")
_AT_WORK = text("SELECT FROM internal_runs WHERE session_id = :session AND finished_at IS NULL LIMIT 1")
_DROP_DOCUMENT = text("DELETE FROM documents WHERE tenant_id = :tenant AND document_id = :document")
_ROW: ColumnElement[str] = literal_column("ctid::text", Text)
_HERE = text("ctid = CAST(:row_id AS tid)")


class PostgresForgetting:
    """The `forgetting` tool for background flows, across all tenants. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def owners(self, until: float) -> list[tuple[TenantId, UserId]]:
        """Return the owners of preferences that were forgotten by `until` (Unix seconds) and not yet erased."""
        query = select(_GONE.tenant_id, _GONE.user_id).where(_still_there(until)).distinct()
        return [
            (TenantId(row.tenant_id), UserId(row.user_id)) for row in await self._database.read_all(query)
        ]

    async def forgotten(self, tenant_id: TenantId, owner: UserId, until: float) -> list[Preference]:
        """Return the owner's preferences that were forgotten by `until` (Unix seconds) and not yet erased.

        Each preference's `updated_at` is the time when it was forgotten.
        """
        query = select(forgotten_preferences).where(*_of(_GONE, tenant_id, owner), _still_there(until))
        return [
            record_of(Preference, row, source=Source.EXPLICIT, updated_at=row.at.timestamp())
            for row in await self._database.read_all(query)
        ]

    async def take_out(self, tenant_id: TenantId, session_id: SessionId, unwanted: Unwanted) -> bool:
        """Remove `unwanted` content from a session's data. Return True if the data no longer contains it.

        Return False, without changes, while a turn or run of the session is active.
        """
        async with self._database.transaction() as connection:
            if await lock_lane(connection, session_id, tenant_id) is None:
                return True
            for question in (_LEASED, _AT_WORK):
                if (await connection.execute(question, {"session": session_id})).first() is not None:
                    return False
            # Fence off workers that still have the old state, so that they can't write the content again.
            fenced = {"lease_token": lanes.c.lease_token + TOKEN_STEP}
            await connection.execute(update(lanes).where(lanes.c.session_id == session_id).values(fenced))
            await fold(connection, session_id)  # so that the current state doesn't depend on diffs
            if unwanted.everything_until is not None:
                unwanted = await _forget_conversation(connection, session_id, unwanted)
            for table in metadata.tables.values():
                if "session_id" in table.c and table not in _FACTS:
                    await _rewrite(connection, table, table.c.session_id == session_id, unwanted)
            runs = select(internal_runs.c.run_id).where(internal_runs.c.session_id == session_id)
            await _rewrite(connection, internal_items, internal_items.c.run_id.in_(runs), unwanted)
        return True

    async def drop_documents(
        self, tenant_id: TenantId, owner: UserId, sessions: list[SessionId], unwanted: Unwanted
    ) -> int:
        """Delete the owner's and the sessions' documents that contain `unwanted` content. Return their number.

        A full erasure deletes all of their documents that are older than the erasure, whatever the content.
        """
        names = {"tenant": tenant_id, "owner": owner, "sessions": list(sessions)}
        async with self._database.transaction() as connection:
            found = (await run_named(connection, "own_documents", **names, until=None)).all()
            gone = {one.document_id for one in found if unwanted.is_in(one.words)}
            if unwanted.everything_until is not None:
                before = await run_named(
                    connection, "own_documents", **names, until=unwanted.everything_until
                )
                gone |= {one.document_id for one in before}
            for document_id in gone:
                await connection.execute(_DROP_DOCUMENT, {"tenant": tenant_id, "document": document_id})
        return len(gone)

    async def finish(
        self, tenant_id: TenantId, owner: UserId, forgotten: list[Preference], until: float
    ) -> None:
        """Erase the user's forgotten preferences, and inferred preferences with the same content as `forgotten`.

        Forgotten rules and playbooks keep their keys.
        """
        mine = (*_of(_GONE, tenant_id, owner), _still_there(until))
        inferred = (*_of(_COLUMNS, tenant_id, owner), _COLUMNS.source.in_((Source.HABIT, Source.INFERRED)))
        async with self._database.transaction() as connection:
            left = (await connection.execute(select(preferences).where(*inferred))).all()
            same = [row.key for row in left if tells(record_of(Preference, row, updated_at=0.0), forgotten)]
            await connection.execute(preferences.delete().where(*inferred, _COLUMNS.key.in_(same)))
            await connection.execute(
                forgotten_preferences.delete().where(*mine, _GONE.kind == "note", _GONE.key != EVERYTHING)
            )
            blank: JsonObject = {"erased": True, "value": None, "text": "", "origin": {}}
            await connection.execute(update(forgotten_preferences).where(*mine).values(blank))
            await run_named(connection, "drop_marks", tenant=tenant_id, owner=owner)


def _of(columns: Any, tenant_id: TenantId, owner: UserId) -> tuple[Any, Any]:
    return columns.tenant_id == tenant_id, columns.user_id == owner


def _still_there(until: float) -> Any:
    return (_GONE.erased == false()) & (_GONE.at <= func.to_timestamp(until))


async def _forget_conversation(
    connection: AsyncConnection, session_id: SessionId, unwanted: Unwanted
) -> Unwanted:
    """Blank all messages from before the full erasure (`unwanted.everything_until`).

    Return `unwanted` with the later messages as content to keep, or without the full erasure if the session
    began after it.
    """
    line, until = utterances.c, func.to_timestamp(unwanted.everything_until)
    begun = select(sessions).where(sessions.c.session_id == session_id, sessions.c.created_at <= until)
    if (await connection.execute(begun)).first() is None:
        return replace(unwanted, everything_until=None)
    said = update(utterances).where(line.session_id == session_id, line.at <= until)
    blank = case((line.content.is_not(None), FORGOTTEN))
    await connection.execute(said.values(content=blank, reply=FORGOTTEN))
    later = select(line.content, line.reply).where(line.session_id == session_id, line.at > until)
    kept = [text for row in await connection.execute(later) for text in row if text is not None]
    return replace(unwanted, kept=tuple(kept))


async def _rewrite(connection: AsyncConnection, table: Table, where: Any, unwanted: Unwanted) -> None:
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
    """Remove unwanted content from a value.

    If a text column contains JSON, such as a button's value, remove the content from the JSON's members.
    """
    if isinstance(value, str) and value[:1] in {"{", "["} and isinstance(column.type, Text):
        try:
            body = orjson.loads(value)
        except orjson.JSONDecodeError:
            return unwanted.take_out(value, column.name)
        after = unwanted.take_out(body)
        return value if after == body else orjson.dumps(after).decode()
    return unwanted.take_out(value, column.name)
