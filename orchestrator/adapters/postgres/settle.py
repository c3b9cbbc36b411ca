"""What a lane's holder does when the merged statements leave a question open. Rare, so in transactions.

Under the lane's lock: quarantine turns whose attempts are used up, take the next that may run, or release
the lane (RT-5, RT-6); fail turns whose predecessor never came; look up commits whose answer was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.locked import NOW, end_turn, lock_lane, may_run, unfinished
from orchestrator.adapters.postgres.pool import Connection, Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import events, journal, lanes, turns
from orchestrator.turns.lease import Lease, Work
from orchestrator.turns.step import Step, StepStatus
from orchestrator.turns.turn import TurnInput, TurnKind, TurnStatus
from orchestrator.types import SessionId, TurnId


@dataclass(frozen=True, slots=True)
class Settled:
    """The turn that runs next, and how many others were merged into it."""

    work: Work
    merges: int


async def settle(
    database: Database,
    session_id: SessionId,
    token: int,
    *,
    max_attempts: int,
    deadline_s: float,
    gap_timeout_s: float,
) -> Settled | None:
    """Take the lane's next turn, or release the lane; None when there is none or the lease is lost."""
    async with database.transaction() as connection:
        lane = await lock_lane(connection, session_id)
        if lane is None or lane.lease_token != token:
            return None
        while True:
            candidate = await _next(connection, lane)
            if candidate is None:
                await _release(connection, lane, gap_timeout_s)
                return None
            if candidate.attempts < max_attempts:
                break
            error = candidate.error or f"its {candidate.attempts} attempts ended without a commit"
            await end_turn(connection, lane, candidate, TurnStatus.QUARANTINED, error)
        row = await _start(connection, candidate, deadline_s)
    steps = () if row.attempts == 1 else await steps_of(database, TurnId(row.turn_id))
    return Settled(_work(row, steps), row.merges)


async def _next(connection: AsyncConnection, lane: Row[Any]) -> Row[Any] | None:
    query = unfinished(lane.session_id, lane.done_seq).where(may_run()).limit(1)
    return (await connection.execute(query)).one_or_none()


async def _start(connection: AsyncConnection, turn: Row[Any], deadline_s: float) -> Row[Any]:
    starting = (
        update(turns)
        .where(turns.c.turn_id == turn.turn_id)
        .values(
            status=TurnStatus.RUNNING.value,
            attempts=turns.c.attempts + 1,
            started_at=func.coalesce(turns.c.started_at, NOW),
            deadline_at=func.coalesce(
                turns.c.deadline_at, NOW + func.make_interval(0, 0, 0, 0, 0, 0, deadline_s)
            ),
        )
        .returning(
            turns,
            func.date_part("epoch", turns.c.deadline_at - NOW).label("remaining_s"),
            func.date_part("epoch", NOW - turns.c.accepted_at).label("waited_s"),
        )
    )
    return (await connection.execute(starting)).one()


async def _release(connection: AsyncConnection, lane: Row[Any], gap_timeout_s: float) -> None:
    """Free the lane. If turns are left they wait for a predecessor: be looked at when that is over."""
    waiting = unfinished(lane.session_id, lane.done_seq).subquery()
    wait = func.make_interval(0, 0, 0, 0, 0, 0, gap_timeout_s)
    gap_at = (await connection.execute(select(func.min(waiting.c.accepted_at) + wait))).scalar_one()
    await connection.execute(
        update(lanes)
        .where(lanes.c.session_id == lane.session_id)
        .values(
            lease_owner=None,
            lease_until=None,
            gap_at=gap_at,
            check_at=lanes.c.check_at if gap_at is None else gap_at,
            pending=lanes.c.pending if gap_at is not None else 0,
        )
    )


async def fail_gap(database: Database, session_id: str, gap_timeout_s: float) -> None:
    """End the turn that waited too long for its predecessor, naming the gap; the rest goes on (RT-5)."""
    async with database.transaction() as connection:
        lane = await lock_lane(connection, SessionId(session_id))
        if lane is None or lane.lease_until is not None:
            return
        late = turns.c.accepted_at <= NOW - func.make_interval(0, 0, 0, 0, 0, 0, gap_timeout_s)
        query = (
            unfinished(session_id, lane.done_seq)
            .where(~may_run(), late)
            .order_by(None)
            .order_by(turns.c.client_sequence)
            .limit(1)
        )
        turn = (await connection.execute(query)).one_or_none()
        if turn is not None:
            missing = turn.client_sequence - 1
            error = (
                f"sequence {missing} did not arrive within {gap_timeout_s:g} s; "
                f"{turn.client_sequence} was not run"
            )
            await end_turn(connection, lane, turn, TurnStatus.FAILED, error)
        await connection.execute(
            update(lanes).where(lanes.c.session_id == session_id).values(gap_at=None, check_at=NOW)
        )


async def finish_merged(connection: Connection, turn_id: TurnId) -> None:
    """Give the turns that were merged into a committed one the same ending, in the same transaction."""
    merged = statement("finish_merged")
    await connection.execute(merged.text, merged.ordered({"turn_id": turn_id}))


async def find_commit(database: Database, lease: Lease, event_count: int) -> tuple[Any, ...] | None:
    """What a commit would have returned, when this lease's commit of this turn is found to have held.

    The following turn, if the lane kept one, is left to `settle`: it is asked for by saying that some
    are pending.
    """
    async with database.transaction() as connection:
        turn = (
            await connection.execute(select(turns).where(turns.c.turn_id == lease.work.turn_id))
        ).one_or_none()
        if turn is None or turn.finished_at is None or turn.token != lease.token:
            return None
        last = select(func.max(events.c.number)).where(
            events.c.session_id == lease.session_id, events.c.turn_id == lease.work.turn_id
        )
        first_event = ((await connection.execute(last)).scalar_one() or 0) - event_count + 1
        lane = await lock_lane(connection, lease.session_id)
        assert lane is not None
        running = None
        if lane.lease_token == lease.token and lane.lease_until is not None:
            candidate = await _next(connection, lane)
            running = None if candidate is None else await _give_back(connection, candidate)
        pending = 0 if running is None else lane.pending
    return (turn.epoch, first_event, pending, *[None] * 11)


async def _give_back(connection: AsyncConnection, turn: Row[Any]) -> Row[Any]:
    """Undo the attempt that the lost answer had counted, so that `settle` counts it once."""
    if turn.status == TurnStatus.RUNNING:
        await connection.execute(
            update(turns).where(turns.c.turn_id == turn.turn_id).values(attempts=turns.c.attempts - 1)
        )
    return turn


async def steps_of(database: Database, turn_id: TurnId) -> tuple[Step, ...]:
    """The journal of earlier attempts, oldest first."""
    query = select(journal).where(journal.c.turn_id == turn_id).order_by(journal.c.at)
    async with database.transaction() as connection:
        return tuple(
            Step(row.key, row.kind, StepStatus(row.status), row.request_hash, row.result)
            for row in await connection.execute(query)
        )


def _work(row: Row[Any], steps: tuple[Step, ...]) -> Work:
    return Work(
        turn_id=TurnId(row.turn_id),
        seq=row.seq,
        input=TurnInput(text=row.text, action=row.action, form=row.form, kind=TurnKind(row.kind)),
        attempts=row.attempts,
        deadline_s=float(row.remaining_s),
        cancelled=row.cancel_requested_at is not None,
        waited_s=float(row.waited_s),
        steps=steps,
    )
