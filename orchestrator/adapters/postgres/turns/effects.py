"""The side-effect ledger in PostgreSQL (RT-10).

The frequent operations, `find_effect` and `record_effect`, take one statement each.
"""

from typing import Any

import orjson
from sqlalchemy import exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import NOW, effects, lanes, record_of, sessions
from orchestrator.errors import LaneLost, NotFound
from orchestrator.turns.effect import Effect, LedgerEntry, LedgerStatus
from orchestrator.turns.lease import Lease
from orchestrator.types import FlowId, Json, SessionId, TenantId, TurnId


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
    named = {"session_id": session_id, "fingerprint": effect.fingerprint}
    row = await database.fetch_one(statement("find_effect"), named)
    if row is None:
        return None
    session_id, turn_id, step_key, key, flow_id, tool_id, arguments, slots, status, *ended = row
    return LedgerEntry(
        *(session_id, effect.fingerprint, turn_id, step_key, key, flow_id, tool_id),
        *(arguments, slots, LedgerStatus(status), *ended),
    )


async def record_effect(database: Database, entry: LedgerEntry, arguments: dict[str, Any]) -> bool | None:
    """Write a step and its ledger entry. Return the result of `Lane.record`, or None if the lane is lost."""
    arguments |= {
        "fingerprint": entry.fingerprint,
        "flow_id": entry.flow_id,
        "tool_id": entry.tool_id,
        "idempotency_key": entry.idempotency_key,
        "arguments": orjson.dumps(entry.arguments).decode(),
        "slots": orjson.dumps(entry.slots).decode(),
        "effect_status": entry.status.value,
        "effect_result": orjson.dumps(entry.result).decode(),
    }
    row = await database.fetch_one(statement("record_effect"), arguments)
    return None if row is None else row[0]


async def adopt_effect(
    database: Database, lease: Lease, turn_id: TurnId, step_key: str, fingerprint: str, flow_id: FlowId
) -> LedgerEntry | None:
    """Change the fingerprint and flow of the ledger entry that an earlier attempt wrote for this step.

    Return the entry, or None if there is no such entry. Raises LaneLost.
    """
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
    """Change a ledger entry's status, and the columns in `more`. Raises LaneLost."""
    async with database.transaction() as connection:
        await _hold(connection, lease)
        await connection.execute(
            update(effects)
            .where(effects.c.session_id == lease.session_id, effects.c.fingerprint == fingerprint)
            .values(status=status.value, at=NOW, **more)
        )


async def _hold(connection: AsyncConnection, lease: Lease) -> None:
    """Protect the lane from a takeover until the transaction ends. Raises LaneLost."""
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
        raise LaneLost("Another worker has taken over this session; the work is discarded.")
