"""Lock a lane's row, and change it rarely under that lock: every statement sees what came before.

The frequent ones are merged statements in `sql/`. Order of locks everywhere: the lane, then its turns.
"""

from typing import Any

from sqlalchemy import Row, Select, and_, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.tables import NOW, events, lanes, turns
from orchestrator.turns.turn import TurnStatus, require_transition, unanswered
from orchestrator.types import Epoch, JsonObject, SessionId, TenantId, TurnId

TOKEN_STEP = 1 << 32
"""Between a lease's token and the least that comes after it; what is below is drawn by lot (`sql/claim.sql`)."""


async def lock_lane(
    connection: AsyncConnection, session_id: SessionId, tenant_id: TenantId | None = None
) -> Row[Any] | None:
    """Lock the lane until the transaction ends; None when there is none (for this tenant)."""
    query = select(lanes).where(lanes.c.session_id == session_id).with_for_update()
    if tenant_id is not None:
        query = query.where(lanes.c.tenant_id == tenant_id)
    return (await connection.execute(query)).one_or_none()


async def lock_lane_of_turn(
    connection: AsyncConnection, tenant_id: TenantId, turn_id: TurnId
) -> tuple[Row[Any], Row[Any]] | None:
    """Lock the lane of a turn, then read the turn; None when this tenant has no such turn."""
    owner = select(turns.c.session_id).where(turns.c.turn_id == turn_id, turns.c.tenant_id == tenant_id)
    session_id = (await connection.execute(owner)).scalar_one_or_none()
    if session_id is None:
        return None
    lane = await lock_lane(connection, session_id)
    assert lane is not None
    turn = (await connection.execute(select(turns).where(turns.c.turn_id == turn_id))).one()
    return lane, turn


def unfinished(session_id: str, done_seq: int) -> Select[Any]:
    """The session's unfinished turns that are not merged into another, in order."""
    return (
        select(turns)
        .where(
            turns.c.session_id == session_id,
            turns.c.seq > done_seq,
            turns.c.finished_at.is_(None),
            turns.c.merged_into.is_(None),
        )
        .order_by(turns.c.seq)
    )


async def free_lane(connection: AsyncConnection, lane: Row[Any]) -> None:
    """Take a lane that is locked from its holder; the turn in hand is queued again, and the attempt does not count."""
    freed = {"lease_owner": None, "lease_until": None, "lease_token": lane.lease_token + TOKEN_STEP}
    await connection.execute(
        update(lanes)
        .where(lanes.c.session_id == lane.session_id)
        .values(**freed, ready_at=NOW, check_at=NOW, updated_at=NOW)
    )
    running = turns.c.session_id == lane.session_id, turns.c.status == TurnStatus.RUNNING.value
    queued = {"status": TurnStatus.QUEUED.value, "attempts": turns.c.attempts - 1}
    await connection.execute(update(turns).where(*running).values(queued))


async def append_event(
    connection: AsyncConnection, session_id: str, turn_id: str | None, kind: str, payload: JsonObject
) -> None:
    """Give the event the session's next number; the lane must be locked."""
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


async def end_turn(
    connection: AsyncConnection,
    lane: Row[Any],
    turn: Row[Any],
    status: TurnStatus,
    error: str | None,
    *,
    acted: bool = False,
) -> None:
    """End a turn without an answer: its row, those merged into it, the lane's counters, one event."""
    require_transition(TurnStatus(turn.status), status)
    rows = select(turns).where(
        or_(
            turns.c.turn_id == turn.turn_id,
            and_(turns.c.merged_into == turn.turn_id, turns.c.finished_at.is_(None)),
        )
    )
    counted = turn.merged_into is None and turn.finished_at is None
    for row in (await connection.execute(rows)).all():
        result = unanswered(
            SessionId(row.session_id),
            TurnId(row.turn_id),
            row.seq,
            Epoch(lane.epoch),
            status,
            row.text,
            acted=acted,
        )
        if row.turn_id != turn.turn_id:
            result["merged_into"] = turn.turn_id
        await connection.execute(
            update(turns)
            .where(turns.c.turn_id == row.turn_id)
            .values(
                status=status.value,
                error=error,
                result=result,
                finished_at=NOW,
                quarantined_at=NOW if status is TurnStatus.QUARANTINED else None,
            )
        )
        await append_event(
            connection,
            row.session_id,
            row.turn_id,
            "failed",
            {"seq": row.seq, "status": status.value, "reply": result["reply"]},
        )
    if counted:
        await connection.execute(
            update(lanes)
            .where(lanes.c.session_id == turn.session_id)
            .values(pending=lanes.c.pending - 1, updated_at=NOW)
        )
