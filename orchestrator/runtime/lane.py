"""Runs a session's lane: claim, think, commit, tell, next. The holder's side of RT-2 … RT-7.

What a turn does is the Agent's matter; who may commit is decided in the store.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Protocol

import structlog

from orchestrator.errors import (
    DeadlineExceeded,
    GaveUp,
    InvalidInput,
    LaneLost,
    Overtaken,
    ParleyError,
    TurnCancelled,
)
from orchestrator.ports.lane import Lane
from orchestrator.ports.turns import LiveEvents
from orchestrator.ports.wakeup import Wakeup
from orchestrator.redaction import hide_secrets
from orchestrator.runtime.endings import (
    Answered,
    Ending,
    Failed,
    HandedBack,
    Lost,
    StopCause,
    as_stopped,
    commit_without_effects,
)
from orchestrator.runtime.interjections import listen
from orchestrator.runtime.journal import Journal, TurnHints
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import QUEUE_SECONDS, TURN_SECONDS, TURNS, TURNS_FAILED, TURNS_LOST
from orchestrator.telemetry.traces import Phases, note_failure, turn_span
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.types import SessionId, TurnId

RETRY_AFTER_S = 0.1
RETRY_AT_MOST_AFTER_S = 2.0
STOPPED_WITHIN_S = 10.0
"""To go over a turn that was stopped; nothing is called meanwhile."""
ERROR_LENGTH = 2000

_log = get_logger(__name__)


class TurnAgent(Protocol):
    """What the lane asks of an agent.

    `deadline_s`: the longest that one attempt at a turn may take, in seconds.
    """

    @property
    def deadline_s(self) -> float: ...

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        """Decide everything the turn changes. Writes nothing but journal steps and effects of tools."""
        ...


Agents = Callable[[str], Awaitable[TurnAgent]]
"""Gives the agent of a domain."""


class LaneRunner:
    """Runs lanes side by side on one event loop.

    Args:
        outbox_filled: called after a commit that has something to send.
    """

    def __init__(
        self,
        lane: Lane,
        live: LiveEvents,
        wakeup: Wakeup,
        agents: Agents,
        *,
        outbox_filled: Callable[[], None] = lambda: None,
    ) -> None:
        self._lane = lane
        self._live = live
        self._wakeup = wakeup
        self._agents = agents
        self._listen = partial(listen, lane, live)
        self._outbox_filled = outbox_filled
        self._thinking: dict[TurnId, tuple[asyncio.Task[None], Journal]] = {}
        self._cancelled: dict[TurnId, TurnCancelled] = {}
        self._owed: dict[SessionId, tuple[Lease, str | None]] = {}
        self._retries: set[asyncio.Task[None]] = set()
        self._draining = False

    async def run(self, session_id: SessionId) -> None:
        """Run the session's turns until none is left. Never raises for what a turn does.

        Raises:
            Unavailable: the store does not answer; the reconciler comes back to the session.
        """
        lease = await self._lane.claim(session_id)
        while lease is not None:
            work, began = lease.work, time.perf_counter()
            structlog.contextvars.bind_contextvars(session=session_id, turn=work.turn_id)
            QUEUE_SECONDS.observe(work.waited_s)
            attributes = {"session_id": session_id, "attempt": work.attempts}
            with turn_span("turn", work.turn_id, waited_s=work.waited_s, **attributes):
                ending = await self._think(lease)
                lease = await self._finish(lease, ending)
            TURN_SECONDS.observe(time.perf_counter() - began)

    def drain(self) -> None:
        """From now on hand a lane back after its present turn."""
        self._draining = True

    async def renew(self) -> None:
        """Prolong what is held, stop what somebody cancelled, and give back what could not be given."""
        for lease, error in list(self._owed.values()):
            await self._abandon(lease, error)
        for _, turn_id in await self._lane.renew():
            await self._attend(turn_id)

    # The steps of a turn, in their order.

    async def _think(self, lease: Lease) -> Ending:
        """Find out how this attempt ends."""
        work = lease.work
        hints = TurnHints(self._live, lease)
        journal = Journal(self._lane, lease, work, hints.tell, self._listen)
        try:
            return Answered(await self._decide(lease, journal))
        except LaneLost as error:
            note_failure(error.code)
            return Lost()
        except asyncio.CancelledError:
            return HandedBack()
        except Exception as error:  # noqa: BLE001 - whatever an agent may raise counts as one failed attempt
            note_failure(type(error).__name__)
            _log.exception(
                "A turn failed.", session=lease.session_id, turn=work.turn_id, attempt=work.attempts
            )
            return Failed(_describe(error))
        finally:
            hints.close()

    async def _decide(self, lease: Lease, journal: Journal) -> TurnCommit:
        """Have the agent decide what the turn changes; when it is stopped, what it has done by then."""
        cause = _find_stop(lease.work)
        if cause is None:
            try:
                async with self._interruptible(lease, journal) as deadline:
                    agent = await self._agents(lease.domain)
                    work = lease.work
                    if agent.deadline_s < work.deadline_s:
                        work = replace(work, deadline_s=agent.deadline_s)
                        deadline.reschedule(asyncio.get_running_loop().time() + agent.deadline_s)
                    return await agent.run_turn(lease, work, journal)
            except (TurnCancelled, DeadlineExceeded) as stop:
                cause = stop
        note_failure(cause.code)
        return await self._end_stopped(lease, journal, cause)

    async def _end_stopped(self, lease: Lease, journal: Journal, cause: StopCause) -> TurnCommit:
        """End a stopped turn through the ledger (RT-25).

        The Agent goes over the turn once more: what was done is taken from the journal and told, what is unknown
        becomes a question, and nothing is called. So a task that was begun stays open, and does nothing twice. One that
        was overtaken stays open in any case: what was said meanwhile is about it.
        """
        overtaken = isinstance(cause, Overtaken) and not cause.takes_back
        if journal.has_calls or overtaken:
            journal.stopped, journal.overtaken = True, overtaken
            agent = await self._agents(lease.domain)
            async with asyncio.timeout(STOPPED_WITHIN_S):
                work = replace(lease.work, deadline_s=STOPPED_WITHIN_S)
                commit = await agent.run_turn(lease, work, journal)
            if journal.effects or overtaken:
                return as_stopped(lease, commit, cause)
        return commit_without_effects(lease, cause)

    async def _finish(self, lease: Lease, ending: Ending) -> Lease | None:
        """Commit or give back; returns the lease of the next turn."""
        match ending:
            case Answered(commit):
                return await self._commit(lease, commit)
            case Failed(error):
                await self._fail(lease, error)
            case HandedBack():
                await self._hand_back(lease)
            case Lost():
                self._record_loss(lease)
        return None

    async def _commit(self, lease: Lease, commit: TurnCommit) -> Lease | None:
        try:
            with Phases("commit"):
                committed = await self._lane.commit(lease, commit)
        except LaneLost:
            self._record_loss(lease)
            return None
        except InvalidInput as error:  # the store has not taken it, and never will
            _log.exception("A turn's commit was refused.", session=lease.session_id, turn=lease.work.turn_id)
            await self._fail(lease, _describe(error))
            return None
        except (Exception, asyncio.CancelledError):
            # It may have been written or not: the fence decides whether giving back does anything.
            await self._abandon(lease, None)
            self._offer_later(lease)
            raise
        TURNS.labels(commit.status.value).inc()
        if commit.outbox:
            self._outbox_filled()
        if committed.events:
            await self._live.publish(lease.session_id, committed.events)
        if committed.next is None:
            return None
        following = replace(lease, epoch=committed.epoch, state=commit.state, patches=(), work=committed.next)
        if self._draining:
            await self._hand_back(following)
            return None
        return following

    # Giving back.

    async def _fail(self, lease: Lease, error: str) -> None:
        """One failed attempt: offered again, until the turn is set aside."""
        TURNS_FAILED.inc()
        await self._abandon(lease, error)
        self._offer_later(lease)

    async def _hand_back(self, lease: Lease) -> None:
        await self._abandon(lease, None)
        await self._wakeup.offer(lease.session_id)

    async def _abandon(self, lease: Lease, error: str | None) -> None:
        """Give the lane back now, or remember to: our renewals would else hold it for ever."""
        self._owed[lease.session_id] = (lease, error)
        try:
            await self._lane.abandon(lease, error=error)
        except LaneLost:
            self._record_loss(lease)
        except ParleyError as problem:
            _log.warning("A lane could not be given back yet.", session=lease.session_id, error=problem)
            return
        self._owed.pop(lease.session_id, None)

    def _offer_later(self, lease: Lease) -> None:
        delay = min(RETRY_AFTER_S * 2 ** (lease.work.attempts - 1), RETRY_AT_MOST_AFTER_S)
        retry = asyncio.create_task(self._offer_after(lease.session_id, delay))
        self._retries.add(retry)
        retry.add_done_callback(self._retries.discard)

    async def _offer_after(self, session_id: SessionId, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        await self._wakeup.offer(session_id)

    def _record_loss(self, lease: Lease) -> None:
        TURNS_LOST.inc()
        _log.warning(
            "A lane was taken over; its work is discarded.",
            session=lease.session_id,
            turn=lease.work.turn_id,
            epoch=lease.epoch,
            token=lease.token,
        )

    # Deadline and cancellation.

    @asynccontextmanager
    async def _interruptible(self, lease: Lease, journal: Journal) -> AsyncGenerator[asyncio.Timeout]:
        """Bound what the agent may take; gives the bound.

        Raises TurnCancelled, DeadlineExceeded: it was stopped.
        """
        work = lease.work
        task = asyncio.current_task()
        assert task is not None
        self._thinking[work.turn_id] = task, journal
        deadline = asyncio.timeout(work.deadline_s)
        try:
            async with deadline:
                yield deadline
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise DeadlineExceeded("The turn ran out of time.") from error
        except asyncio.CancelledError as error:
            if work.turn_id not in self._cancelled:
                raise
            task.uncancel()
            raise self._cancelled[work.turn_id] from error
        finally:
            del self._thinking[work.turn_id]
            self._cancelled.pop(work.turn_id, None)

    async def _attend(self, turn_id: TurnId) -> None:
        """Read what was said to a turn that is being thought about, and stop it if that is meant.

        One that is past that will end by itself. A call with an effect is waited for, unless the turn was cancelled.
        """
        if turn_id not in self._thinking or turn_id in self._cancelled:
            return
        task, journal = self._thinking[turn_id]
        try:
            await self._listen(journal)
        except TurnCancelled as stop:
            may_stop = not (journal.acting and isinstance(stop, Overtaken))
            if may_stop and turn_id in self._thinking and turn_id not in self._cancelled:
                self._cancelled[turn_id] = stop
                task.cancel()


def _find_stop(work: Work) -> StopCause | None:
    """Why a turn is not to be begun at all; None when it is."""
    if work.cancelled:
        return TurnCancelled("The turn was cancelled.")
    if work.failure is not None:
        return GaveUp(work.failure)
    return DeadlineExceeded("The turn ran out of time.") if work.deadline_s <= 0 else None


def _describe(error: Exception) -> str:
    name = error.code if isinstance(error, ParleyError) else type(error).__name__
    return hide_secrets(f"{name}: {error}")[:ERROR_LENGTH]
