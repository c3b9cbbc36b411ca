"""Rare changes to session lanes, in transactions that lock the lane's row.

Frequent changes are single statements in `sql/`. The lock order is always the lane, then its turns.
"""

from functools import partial
from typing import Any

from sqlalchemy import Row, Select, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.tables import NOW, events, lanes, required, sessions, turns
from orchestrator.saying import WordFor
from orchestrator.turns.turn import TurnStatus, require_transition, unanswered
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId

TOKEN_STEP = 1 << 32
"""Increment for the upper half of a lease token. The lower half is random (`sql/claim.sql`)."""


async def lock_lane(
    connection: AsyncConnection, session_id: SessionId, tenant_id: TenantId | None = None
) -> Row[Any] | None:
    """Lock the lane until the transaction ends. Return the lane's row, or None if it doesn't exist.

    `tenant_id`: the lane must belong to this tenant. Default: any tenant.
    """
    query = select(lanes).where(lanes.c.session_id == session_id).with_for_update()
    if tenant_id is not None:
        query = query.where(lanes.c.tenant_id == tenant_id)
    return (await connection.execute(query)).one_or_none()


async def require_lane(connection: AsyncConnection, tenant_id: TenantId, session_id: SessionId) -> Row[Any]:
    """Lock a tenant's lane, and return its row. Raises NotFound."""
    return required(await lock_lane(connection, session_id, tenant_id), "session", session_id)


async def lock_lane_of_turn(
    connection: AsyncConnection, tenant_id: TenantId, turn_id: TurnId
) -> tuple[Row[Any], Row[Any]]:
    """Lock a turn's lane. Return the lane's and the turn's rows. Raises NotFound."""
    owner = select(turns.c.session_id).where(turns.c.turn_id == turn_id, turns.c.tenant_id == tenant_id)
    session_id = required((await connection.execute(owner)).scalar_one_or_none(), "turn", turn_id)
    lane = await require_lane(connection, tenant_id, session_id)
    turn = (await connection.execute(select(turns).where(turns.c.turn_id == turn_id))).one()
    return lane, turn


def unfinished(session_id: str, done_seq: int) -> Select[Any]:
    """Select the session's unfinished turns, in order. All turns up to `done_seq` are finished."""
    return (
        select(turns)
        .where(
            turns.c.session_id == session_id,
            turns.c.seq > done_seq,
            turns.c.finished_at.is_(None),
        )
        .order_by(turns.c.seq)
    )


async def free_lane(connection: AsyncConnection, lane: Row[Any]) -> None:
    """Release a locked lane. Requeue the running turn without counting its attempt."""
    freed = {"lease_owner": None, "lease_until": None, "lease_token": lane.lease_token + TOKEN_STEP}
    await connection.execute(
        update(lanes)
        .where(lanes.c.session_id == lane.session_id)
        .values(**freed, ready_at=NOW, check_at=NOW, updated_at=NOW)
    )
    await requeue_running(connection, lane.session_id)


async def requeue_running(connection: AsyncConnection, session_id: str) -> None:
    """Requeue the session's running turn without counting its attempt. The lane must be locked."""
    running = turns.c.session_id == session_id, turns.c.status == TurnStatus.RUNNING.value
    queued = {"status": TurnStatus.QUEUED.value, "attempts": turns.c.attempts - 1}
    await connection.execute(update(turns).where(*running).values(queued))


async def append_event(
    connection: AsyncConnection, session_id: str, turn_id: str | None, kind: str, payload: JsonObject
) -> None:
    """Append an event with the session's next number. The lane must be locked."""
    numbering = (
        update(lanes)
        .where(lanes.c.session_id == session_id)
        .values(next_event=lanes.c.next_event + 1)
        .returning(lanes.c.next_event - 1, lanes.c.tenant_id)
    )
    number, tenant_id = (await connection.execute(numbering)).one()
    await connection.execute(
        insert(events).values(
            session_id=session_id,
            number=number,
            tenant_id=tenant_id,
            turn_id=turn_id,
            body=[{"type": kind, "payload": payload}],
        )
    )


async def enqueue_turn(connection: AsyncConnection, lane: Row[Any], turn_id: str) -> None:
    """Count a queued turn on the locked lane, and append its `accepted` event."""
    await connection.execute(
        update(lanes)
        .where(lanes.c.session_id == lane.session_id)
        .values(
            next_seq=lanes.c.next_seq + 1,
            pending=lanes.c.pending + 1,
            gap_at=None,
            ready_at=NOW if lane.pending == 0 else lane.ready_at,
            check_at=func.least(lanes.c.check_at, NOW),
            updated_at=NOW,
        )
    )
    told = {"seq": lane.next_seq, "position": lane.pending}
    await append_event(connection, lane.session_id, turn_id, "accepted", told)


async def end_turn(
    connection: AsyncConnection,
    lane: Row[Any],
    turn: Row[Any],
    status: TurnStatus,
    error: str | None,
    word: WordFor,
    *,
    acted: bool = False,
) -> None:
    """End a turn without an answer: update its row and the lane's counters, and append its `failed` event.

    `acted`, `word`: see `unanswered`.
    """
    require_transition(TurnStatus(turn.status), status)
    unfinished_yet = turn.finished_at is None
    domain = select(sessions.c.domain).where(sessions.c.session_id == turn.session_id)
    in_language = partial(word, (await connection.execute(domain)).scalar_one())
    result = unanswered(Epoch(lane.epoch), status, in_language, acted=acted)
    ended = {"status": status.value, "error": error, "result": result, "finished_at": NOW}
    quarantined_at = NOW if status is TurnStatus.QUARANTINED else None
    await connection.execute(
        update(turns).where(turns.c.turn_id == turn.turn_id).values(**ended, quarantined_at=quarantined_at)
    )
    told = {"seq": turn.seq, "status": status.value, "reply": result["reply"]}
    await append_event(connection, turn.session_id, turn.turn_id, "failed", told)
    if unfinished_yet:
        await connection.execute(
            update(lanes)
            .where(lanes.c.session_id == turn.session_id)
            .values(pending=lanes.c.pending - 1, updated_at=NOW)
        )
