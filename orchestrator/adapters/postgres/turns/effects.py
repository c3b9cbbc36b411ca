"""The ledger of effects on PostgreSQL: what is rare enough for built statements (RT-10).

What is frequent is in `sql/find_effect.sql` and `sql/record_effect.sql`, which writes it together with the journal.
"""

import asyncio
from typing import Any

import orjson
from psycopg.rows import TupleRow
from sqlalchemy import exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import NOW, effects, lanes, record_of, sessions
from orchestrator.errors import LaneLost, NotFound
from orchestrator.turns.effect import MAY_BE_HAD, Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Lease
from orchestrator.turns.step import UnknownOutcome
from orchestrator.types import FlowId, Json, SessionId, TenantId, TurnId

_LOOK_AGAIN_S = 0.05
"""Between two looks at a call that another branch makes."""


class PostgresEffects:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        known = select(exists().where(sessions.c.session_id == session_id, sessions.c.tenant_id == tenant_id))
        query = (
            select(effects)
            .where(effects.c.session_id == session_id, effects.c.tenant_id == tenant_id)
            .order_by(effects.c.at)
            .limit(limit)
        )
        async with self._database.transaction() as connection:
            if not (await connection.execute(known)).scalar_one():
                raise NotFound("session", session_id)
            return [record_of(LedgerEntry, row) for row in await connection.execute(query)]


async def find_effect(database: Database, session_id: SessionId, effect: Effect) -> LedgerEntry | None:
    """See the lane's port."""
    named = _name_call(session_id, effect)
    while True:
        found, is_at_work = _read(await database.fetch_one(statement("find_effect"), named), effect)
        if not is_at_work:
            return found
        await asyncio.sleep(_LOOK_AGAIN_S)


async def record_effect(
    database: Database, entry: LedgerEntry, arguments: dict[str, Any]
) -> bool | UnknownOutcome | None:
    """Write a step and its line of the ledger, see the lane's port. None: the lane is lost."""
    arguments |= {
        **_name_call(entry.session_id, entry),
        "flow_id": entry.flow_id,
        "idempotency_key": entry.idempotency_key,
        "slots": orjson.dumps(entry.slots).decode(),
        "effect_status": entry.status.value,
        "effect_result": orjson.dumps(entry.result).decode(),
        "alone": False,
    }
    row = await database.fetch_one(statement("record_effect"), arguments)
    if row is not None and row[0] is None:
        return await _record_alone(database, entry, arguments | {"alone": True})
    return None if row is None else row[0]


async def _record_alone(
    database: Database, entry: LedgerEntry, arguments: dict[str, Any]
) -> bool | UnknownOutcome | None:
    """Begin a call that other branches may begin as well: by one at a time, who sees what those before have begun."""
    waited = False
    while True:
        async with database.hot_transaction() as hot:
            await hot.fetch_all(statement("lock_effect"), arguments)
            found, is_at_work = _read(await hot.fetch_one(statement("find_effect"), arguments), entry)
            is_known = found is None or (
                found.session_id == entry.session_id or found.idempotency_key == entry.idempotency_key
            )
            stands = waited and found is not None and found.status in MAY_BE_HAD
            if is_known and not stands and not is_at_work:
                row = await hot.fetch_one(statement("record_effect"), arguments)
                return None if row is None else row[0]
        if found is not None and not is_at_work:
            elsewhere = found.status is LedgerStatus.DONE and found.session_id != entry.session_id
            return UnknownOutcome(entry.step_key, found.idempotency_key, elsewhere=elsewhere)
        waited = True
        await asyncio.sleep(_LOOK_AGAIN_S)


def _name_call(session_id: SessionId, call: Effect | LedgerEntry) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "fingerprint": call.fingerprint,
        "tool_id": call.tool_id,
        "arguments": orjson.dumps(call.arguments).decode(),
    }


def _read(row: TupleRow | None, call: Effect | LedgerEntry) -> tuple[LedgerEntry | None, bool]:
    """The line that was found, and whether another branch makes the call now."""
    assert row is not None
    session_id, turn_id, step_key, key, flow_id, tool_id, arguments, slots, status, *ended, is_at_work = row
    if session_id is None:
        return None, is_at_work
    entry = LedgerEntry(
        *(session_id, call.fingerprint, turn_id, step_key, key, flow_id, tool_id),
        *(arguments, slots, LedgerStatus(status), *ended),
    )
    return entry, is_at_work


async def adopt_effect(
    database: Database, lease: Lease, turn_id: TurnId, step_key: str, fingerprint: str, flow_id: FlowId
) -> LedgerEntry | None:
    """Give the line of an earlier attempt the fingerprint and flow of this one. Raises LaneLost."""
    mine = (effects.c.session_id == lease.session_id, effects.c.turn_id == turn_id)
    query = select(effects).where(*mine, effects.c.step_key == step_key)
    async with database.transaction() as connection:
        await _hold(connection, lease)
        row = (await connection.execute(query)).one_or_none()
        if row is None or row.fingerprint == fingerprint:
            return None if row is None else record_of(LedgerEntry, row)
        changing = (
            update(effects)
            .where(*mine, effects.c.step_key == step_key)
            .values(fingerprint=fingerprint, flow_id=flow_id)
            .returning(effects)
        )
        return record_of(LedgerEntry, (await connection.execute(changing)).one())


async def change_effect(
    database: Database, lease: Lease, fingerprint: str, status: LedgerStatus, **more: Json
) -> None:
    """Change the status, and `more` columns, in each ledger of the family that has the line. Raises LaneLost."""
    own, root = sessions.c.session_id == lease.session_id, lease.root or lease.session_id
    key = select(effects.c.idempotency_key).where(
        effects.c.session_id == lease.session_id, effects.c.fingerprint == fingerprint
    )
    family = select(sessions.c.session_id).where(
        or_(own, sessions.c.session_id == root, sessions.c.root == root)
    )
    async with database.transaction() as connection:
        await _hold(connection, lease)
        await connection.execute(
            update(effects)
            .where(effects.c.idempotency_key == key.scalar_subquery(), effects.c.session_id.in_(family))
            .values(status=status.value, at=NOW, **more)
        )


async def _hold(connection: AsyncConnection, lease: Lease) -> None:
    """Keep the lane from being taken over until this transaction ends."""
    held = (
        select(lanes.c.session_id)
        .where(
            lanes.c.session_id == lease.session_id,
            lanes.c.lease_token == lease.token,
            lanes.c.epoch == lease.epoch,
        )
        .with_for_update(read=True)
    )
    if (await connection.execute(held)).one_or_none() is None:
        raise LaneLost("Another worker has taken this session over; the work is discarded.")
