"""The ledger of effects on PostgreSQL: what is rare enough for built statements (RT-10).

Writing it together with the journal is `lane`'s, in `sql/record_effect.sql`.
"""

import orjson
from sqlalchemy import exists, or_, select, update
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
    fingerprint, arguments = effect.fingerprint, orjson.dumps(effect.arguments).decode()
    named = {
        "session_id": session_id,
        "fingerprint": fingerprint,
        "tool_id": effect.tool_id,
        "arguments": arguments,
    }
    row = await database.fetch_one(statement("find_effect"), named)
    if row is None:
        return None
    turn_id, step_key, key, flow_id, tool_id, arguments, slots, status, *ended = row
    return LedgerEntry(
        *(session_id, fingerprint, turn_id, step_key, key, flow_id, tool_id),
        *(arguments, slots, LedgerStatus(status), *ended),
    )


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
