"""A worker's session lanes: claim, run, commit and publish turns (RT-2 … RT-7).

The Agent decides what a turn changes. The store decides which worker can commit.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
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
from orchestrator.redaction import describe_error
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
from orchestrator.runtime.journal import Journal, TurnHints
from orchestrator.saying import WordFor, unworded
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import QUEUE_SECONDS, TURN_SECONDS, TURNS, TURNS_FAILED, TURNS_LOST
from orchestrator.telemetry.traces import Phases, note_failure, turn_span
from orchestrator.turns.lease import Lease, TurnCommit, Work
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import SessionId, TurnId

CLAIMS_AT_ONCE = 16
RETRY_AFTER_S = 0.1
RETRY_AT_MOST_AFTER_S = 2.0
STOPPED_WITHIN_S = 10.0
"""Time limit for re-running a stopped turn without calls, in seconds."""

_log = get_logger(__name__)


class TurnAgent(Protocol):
    """The lane runner's view of an agent. `deadline_s`: maximum duration of an attempt, in seconds."""

    @property
    def deadline_s(self) -> float: ...

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        """Run a turn and return its changes.

        The agent itself stores nothing except journal steps. Only its tools have side effects.
        """
        ...


class TurnObserver:
    """An observer of turn attempts in this process. By default, it ignores them."""

    def began(self, session_id: SessionId, work: Work) -> None: ...

    def ended(self, session_id: SessionId, turn_id: TurnId, status: TurnStatus) -> None: ...

    def left(self, turn_id: TurnId, *, again: bool) -> None:
        """Observe an attempt that did not end its turn.

        `again`: True if the turn is offered again, False if another worker has claimed it.
        """


Agents = Callable[[str], Awaitable[TurnAgent]]


class LaneRunner:
    """A runner of concurrent session lanes on one event loop.

    Args:
        outbox_filled: called after a commit with outbox messages.
        tasks_ended: called after the commit of a turn that Celery tasks wait for.
        word: renders the replies of turns that end without an agent.
    """

    def __init__(
        self,
        lane: Lane,
        live: LiveEvents,
        wakeup: Wakeup,
        agents: Agents,
        *,
        observer: TurnObserver | None = None,
        outbox_filled: Callable[[], None] = lambda: None,
        tasks_ended: Callable[[], None] = lambda: None,
        word: WordFor = unworded,
    ) -> None:
        self._lane = lane
        self._live = live
        self._wakeup = wakeup
        self._agents = agents
        self._observer = observer or TurnObserver()
        self._outbox_filled, self._tasks_ended = outbox_filled, tasks_ended
        self._word = word
        self._thinking: dict[TurnId, tuple[asyncio.Task[None], Journal]] = {}
        self._cancelled: dict[TurnId, TurnCancelled] = {}
        self._owed: dict[SessionId, tuple[Lease, str | None]] = {}
        self._retries: set[asyncio.Task[None]] = set()
        self._draining = False
        self._claims = asyncio.Semaphore(CLAIMS_AT_ONCE)

    async def run(self, session_id: SessionId) -> None:
        """Run a session's turns until no turn can run. Errors of turns are recorded, not raised.

        Raises Unavailable if the store does not respond. The reconciler retries the session later.
        """
        async with self._claims:
            lease = await self._lane.claim(session_id)
        while lease is not None:
            work, began = lease.work, time.perf_counter()
            structlog.contextvars.bind_contextvars(session=session_id, turn=work.turn_id)
            QUEUE_SECONDS.observe(work.waited_s)
            self._observer.began(session_id, work)
            attributes = {"session_id": session_id, "attempt": work.attempts}
            with turn_span("turn", work.turn_id, waited_s=work.waited_s, **attributes):
                ending = await self._think(lease)
                lease = await self._finish(lease, ending)
            TURN_SECONDS.observe(time.perf_counter() - began)

    async def keep_up(self) -> None:
        """Wait while `CLAIMS_AT_ONCE` claims are pending, so that other workers can take further sessions."""
        async with self._claims:
            pass

    def drain(self) -> None:
        """Release each lane when its current turn ends, even if the session has more turns."""
        self._draining = True

    async def renew(self) -> None:
        """Renew this worker's leases, stop canceled or overtaken turns, and retry failed releases."""
        for lease, error in list(self._owed.values()):
            await self._abandon(lease, error)
        for _, turn_id in await self._lane.renew():
            await self._attend(turn_id)

    async def _think(self, lease: Lease) -> Ending:
        work = lease.work
        hints = TurnHints(self._live, lease)
        journal = Journal(self._lane, lease, work, hints.tell)
        try:
            return Answered(await self._decide(lease, journal))
        except LaneLost as error:
            note_failure(error.code)
            return Lost()
        except asyncio.CancelledError:
            return HandedBack()
        except Exception as error:  # noqa: BLE001 - any agent error counts as a failed attempt
            note_failure(type(error).__name__)
            _log.exception(
                "A turn failed.", session=lease.session_id, turn=work.turn_id, attempt=work.attempts
            )
            return Failed(_describe(error))
        finally:
            hints.close()

    async def _decide(self, lease: Lease, journal: Journal) -> TurnCommit:
        """Run the agent's turn and return its commit. If the turn is stopped, commit the work done so far."""
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
        """Return the commit for a stopped turn, including the results in the journal (RT-25).

        If tools were called or the turn was overtaken, the agent runs the turn again without calls. It reports
        completed calls from the journal and asks about unknown outcomes, so that no side effect is repeated. An
        overtaken task stays open unless the newer message rolls it back, because that message is about this task.
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
        return commit_without_effects(lease, cause, self._word)

    async def _finish(self, lease: Lease, ending: Ending) -> Lease | None:
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
        except InvalidInput as error:  # The store would reject this commit in every attempt.
            _log.exception("A turn's commit was refused.", session=lease.session_id, turn=lease.work.turn_id)
            await self._fail(lease, _describe(error))
            return None
        except (Exception, asyncio.CancelledError):
            # The commit may have been written. In that case, the finished turn is not queued again.
            await self._abandon(lease, None)
            self._offer_later(lease)
            self._observer.left(lease.work.turn_id, again=True)
            raise
        self._observer.ended(lease.session_id, lease.work.turn_id, commit.status)
        TURNS.labels(commit.status.value).inc()
        if commit.outbox:
            self._outbox_filled()
        if committed.awaited:
            self._tasks_ended()
        if committed.events:
            await self._live.publish(lease.session_id, committed.events)
        if committed.next is None:
            return None
        following = replace(lease, epoch=committed.epoch, state=commit.state, patches=(), work=committed.next)
        if self._draining:
            await self._hand_back(following)
            return None
        return following

    async def _fail(self, lease: Lease, error: str) -> None:
        """Record a failed attempt. The turn is offered again until it is quarantined."""
        TURNS_FAILED.inc()
        await self._abandon(lease, error)
        self._offer_later(lease)
        self._observer.left(lease.work.turn_id, again=True)

    async def _hand_back(self, lease: Lease) -> None:
        await self._abandon(lease, None)
        self._observer.left(lease.work.turn_id, again=True)
        await self._wakeup.offer(lease.session_id, tenant_id=lease.tenant_id)

    async def _abandon(self, lease: Lease, error: str | None) -> None:
        """Release the lane. If this fails, the next `renew` retries, so that the lane does not stay leased."""
        self._owed[lease.session_id] = (lease, error)
        try:
            await self._lane.abandon(lease, error=error)
        except LaneLost:
            self._record_loss(lease)
        except ParleyError as problem:
            _log.warning("Could not release a session lane yet.", session=lease.session_id, error=problem)
            return
        self._owed.pop(lease.session_id, None)

    def _offer_later(self, lease: Lease) -> None:
        delay = min(RETRY_AFTER_S * 2 ** (lease.work.attempts - 1), RETRY_AT_MOST_AFTER_S)
        retry = asyncio.create_task(self._offer_after(lease, delay))
        self._retries.add(retry)
        retry.add_done_callback(self._retries.discard)

    async def _offer_after(self, lease: Lease, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        await self._wakeup.offer(lease.session_id, tenant_id=lease.tenant_id)

    def _record_loss(self, lease: Lease) -> None:
        TURNS_LOST.inc()
        self._observer.left(lease.work.turn_id, again=False)
        _log.warning(
            "Another worker took over a session lane; this worker's result is discarded.",
            session=lease.session_id,
            turn=lease.work.turn_id,
            epoch=lease.epoch,
            token=lease.token,
        )

    @asynccontextmanager
    async def _interruptible(self, lease: Lease, journal: Journal) -> AsyncGenerator[asyncio.Timeout]:
        """Limit the duration of the block, and yield the timeout.

        Raise TurnCancelled or DeadlineExceeded if the turn is stopped.
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
        """Classify mid-turn messages for a running turn, and stop the turn if necessary.

        Only a cancellation interrupts a running call with a side effect. Other stops wait for the end of the
        call.
        """
        if turn_id not in self._thinking or turn_id in self._cancelled:
            return
        task, journal = self._thinking[turn_id]
        try:
            await journal.listen()
        except TurnCancelled as stop:
            may_stop = not (journal.acting and isinstance(stop, Overtaken))
            if may_stop and turn_id in self._thinking and turn_id not in self._cancelled:
                self._cancelled[turn_id] = stop
                task.cancel()


def _find_stop(work: Work) -> StopCause | None:
    if work.cancelled:
        return TurnCancelled("The turn was canceled.")
    if work.failure is not None:
        return GaveUp(work.failure)
    return DeadlineExceeded("The turn ran out of time.") if work.deadline_s <= 0 else None


def _describe(error: Exception) -> str:
    name = error.code if isinstance(error, ParleyError) else type(error).__name__
    return describe_error(f"{name}: {error}")
