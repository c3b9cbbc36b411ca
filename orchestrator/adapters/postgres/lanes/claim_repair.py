"""Handle rare cases of claims and commits, in transactions that lock the lane.

The functions quarantine turns without remaining attempts, claim the next runnable turn, or release the lane
(RT-5, RT-6). They also fail turns whose predecessor never arrived, and find commits whose response was lost.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.lane_lock import end_turn, lock_lane, requeue_running, unfinished
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import run_named, statement
from orchestrator.adapters.postgres.tables import NOW, effects, events, lanes, seconds, turns
from orchestrator.saying import WordFor
from orchestrator.turns.lease import Lease
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import SessionId, TurnId

LEFT_FOR_S = 10.0
"""Seconds that a lane waits for an isolated process, after which sweeps return the lane again."""

Suspected = Callable[[SessionId, int], None]
"""A callback for a session whose next turn is a suspected poison turn, with the turn's number of crashes."""
Quarantined = Callable[[SessionId, TurnId], None]
"""A callback for a turn that was quarantined without another attempt."""


@dataclass(frozen=True, slots=True)
class ClaimRepair:
    """Rare cases of a worker's claims.

    Args:
        limits: the arguments of all statements that claim a turn.
        gap_timeout_s: how long a turn waits for its predecessor in `sequence`, in seconds.
        suspected, quarantined: receive turns that don't run here.
        word: renders the replies of turns that end without an Agent.
    """

    database: Database
    limits: Mapping[str, Any]
    gap_timeout_s: float
    suspected: Suspected
    quarantined: Quarantined
    word: WordFor

    async def take_turn(self, session_id: SessionId, token: int) -> Sequence[Any] | None:
        """Claim the lane's next turn. Return None if no turn can run here or the lease is lost.

        The result contains the turn's columns, as in `sql/claim.sql`. If no turn can run yet, release the lane. If
        the next turn has crashed too often for this process, leave the lane and call `suspected`.
        """
        given_up: list[TurnId] = []
        async with self.database.transaction() as connection:
            taken = await self._take_turn(connection, session_id, token, given_up)
        for turn_id in given_up:
            self.quarantined(session_id, turn_id)
        return taken

    async def _take_turn(
        self, connection: AsyncConnection, session_id: SessionId, token: int, given_up: list[TurnId]
    ) -> Sequence[Any] | None:
        lane = await lock_lane(connection, session_id)
        if lane is None or lane.lease_token != token:
            return None
        while True:
            found = await run_named(connection, "take_turn", session_id=session_id, **self.limits)
            row = found.one_or_none()
            if row is None:
                await _release(connection, lane, self.gap_timeout_s)
                return None
            turn_id, *taken = row
            if taken[0] is not None:
                return taken
            turn = await _turn(connection, turn_id)
            known = select(exists().where(effects.c.turn_id == turn_id))
            acted = (await connection.execute(known)).scalar_one()
            crashed = turn.status == TurnStatus.RUNNING
            crashes = turn.crashes + crashed
            over = crashed and turn.alone and not (acted and turn.attempts <= self.limits["max_attempts"])
            below = self.limits["crashes_below"]
            if below is not None and crashes >= below and not over:
                await run_named(connection, "leave_lane", **_left(session_id, token))
                self.suspected(session_id, crashes)
                return None
            error = turn.error or f"the worker crashed {crashes} times while running this turn"
            await end_turn(connection, lane, turn, TurnStatus.QUARANTINED, error, self.word, acted=acted)
            given_up.append(turn_id)

    async def leave(self, session_id: SessionId, token: int, crashes: int) -> None:
        """Leave a lane whose next turn is a suspected poison turn to an isolated process.

        This takes a single statement, because one crash can affect many lanes.
        """
        if await self.database.fetch_one(statement("leave_lane"), _left(session_id, token)) is not None:
            self.suspected(session_id, crashes)

    async def fail_gap(self, session_id: SessionId) -> None:
        """Fail a turn that has waited too long for its predecessor, so that later turns can run (RT-5).

        Do nothing if a worker holds the lane.
        """
        async with self.database.transaction() as connection:
            lane = await lock_lane(connection, session_id)
            if lane is None or lane.lease_until is not None:
                return
            found = await run_named(
                connection,
                "find_gap",
                session_id=session_id,
                done_seq=lane.done_seq,
                gap_timeout_s=self.gap_timeout_s,
            )
            late = found.scalar_one_or_none()
            if late is not None:
                turn = await _turn(connection, late)
                error = (
                    f"sequence {turn.client_sequence - 1} did not arrive within {self.gap_timeout_s:g} s, "
                    f"so sequence {turn.client_sequence} was not run"
                )
                await end_turn(connection, lane, turn, TurnStatus.FAILED, error, self.word)
            await connection.execute(
                update(lanes).where(lanes.c.session_id == session_id).values(gap_at=None, check_at=NOW)
            )


def _left(session_id: SessionId, token: int) -> dict[str, Any]:
    return {"session_id": session_id, "token": token, "left_for_s": LEFT_FOR_S}


async def find_commit(database: Database, lease: Lease, event_count: int) -> Sequence[Any] | None:
    """Return this lease's commit as a row of `commit_turn.sql`, or None if the commit did not take effect.

    If the commit also claimed the next turn, requeue that turn and report it as pending, so that
    `take_turn` claims it. `event_count`: number of events in the commit.
    """
    async with database.transaction() as connection:
        query = select(turns).where(turns.c.turn_id == lease.work.turn_id)
        turn = (await connection.execute(query)).one_or_none()
        if turn is None or turn.finished_at is None or turn.token != lease.token:
            return None
        last = select(func.max(events.c.number)).where(
            events.c.session_id == lease.session_id, events.c.turn_id == lease.work.turn_id
        )
        first_event = ((await connection.execute(last)).scalar_one() or 0) - event_count + 1
        lane = await lock_lane(connection, lease.session_id)
        assert lane is not None
        pending = 0
        if lane.lease_token == lease.token and lane.lease_until is not None:
            pending = lane.pending
            await requeue_running(connection, lane.session_id)  # `take_turn` counts the attempt again
    return (turn.epoch, first_event, pending, turn.awaited, None)


async def _release(connection: AsyncConnection, lane: Row[Any], gap_timeout_s: float) -> None:
    """Release the lane.

    Any remaining turns wait for a predecessor, so schedule a check for the end of the first such wait.
    """
    waiting = unfinished(lane.session_id, lane.done_seq).subquery()
    wait = seconds(gap_timeout_s)
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


async def _turn(connection: AsyncConnection, turn_id: TurnId) -> Row[Any]:
    return (await connection.execute(select(turns).where(turns.c.turn_id == turn_id))).one()
