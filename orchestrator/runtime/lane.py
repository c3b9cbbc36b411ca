"""Run a session's lane: claim, process, commit, publish, next. The holder's side of RT-2 … RT-7.

The Agent decides what a turn does; the store decides who can commit.
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
"""Time to re-run a stopped turn; nothing is called meanwhile."""
ERROR_LENGTH = 2000

_log = get_logger(__name__)


class TurnAgent(Protocol):
    """An agent, as the lane uses it.

    `deadline_s`: maximum duration of one attempt, in seconds.
    """

    @property
    def deadline_s(self) -> float: ...

    async def run_turn(self, lease: Lease, work: Work, journal: Journal) -> TurnCommit:
        """Decide everything the turn changes. Only writes journal steps and calls tools."""
        ...


class TurnObserver(Protocol):
    """An observer of this process's attempts at turns."""

    def began(self, session_id: SessionId, work: Work) -> None:
        """Count a started attempt at a turn."""
        ...

    def ended(self, session_id: SessionId, turn_id: TurnId, status: TurnStatus) -> None:
        """Count an ended turn."""
        ...

    def left(self, turn_id: TurnId, *, again: bool) -> None:
        """Count an attempt that didn't end its turn: the turn is offered again, or another worker has claimed it."""
        ...


class _NoObserver:
    def began(self, session_id: SessionId, work: Work) -> None: ...

    def ended(self, session_id: SessionId, turn_id: TurnId, status: TurnStatus) -> None: ...

    def left(self, turn_id: TurnId, *, again: bool) -> None: ...


Agents = Callable[[str], Awaitable[TurnAgent]]
"""A function that returns the agent of a domain."""


class LaneRunner:
    """A runner of concurrent session lanes on one event loop.

    Args:
        observer: receives each attempt at a turn.
        outbox_filled: called after a commit with something to send.
        tasks_ended: called after the commit of a turn that broker tasks wait for.
        word: for replies without an Agent.
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
        self._observer: TurnObserver = observer or _NoObserver()
        self._listen = partial(listen, lane)
        self._outbox_filled, self._tasks_ended = outbox_filled, tasks_ended
        self._word = word
        self._thinking: dict[TurnId, tuple[asyncio.Task[None], Journal]] = {}
        self._cancelled: dict[TurnId, TurnCancelled] = {}
        self._owed: dict[SessionId, tuple[Lease, str | None]] = {}
        self._retries: set[asyncio.Task[None]] = set()
        self._draining = False
        self._claims = asyncio.Semaphore(CLAIMS_AT_ONCE)

    async def run(self, session_id: SessionId) -> None:
        """Run the session's turns until none is left. Never raises for what a turn does.

        Raises:
            Unavailable: the store does not respond; the reconciler retries the session.
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
        """Wait until the sessions run so far are claimed, so that others stay where any worker can take them."""
        async with self._claims:
            pass

    def drain(self) -> None:
        """Release each lane after its current turn from now on."""
        self._draining = True

    async def renew(self) -> None:
        """Renew leases, stop canceled turns, and retry failed releases."""
        for lease, error in list(self._owed.values()):
            await self._abandon(lease, error)
        for _, turn_id in await self._lane.renew():
            await self._attend(turn_id)

    # The steps of a turn, in order.

    async def _think(self, lease: Lease) -> Ending:
        """Run the attempt and return how it ends."""
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
        """Run the agent's turn. If the turn is stopped, return the work done so far."""
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

        The Agent runs the turn again without calling anything: completed calls are taken from the journal
        and reported, and unknown outcomes become questions. A task in progress therefore stays open and
        repeats no side effect. An overtaken task always stays open, because the newer message is about it.
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
        """Commit or release; return the lease of the next turn."""
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
        except InvalidInput as error:  # the store rejected it and always will
            _log.exception("A turn's commit was refused.", session=lease.session_id, turn=lease.work.turn_id)
            await self._fail(lease, _describe(error))
            return None
        except (Exception, asyncio.CancelledError):
            # The commit may or may not have been written: the fence decides whether releasing has an
            # effect.
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

    # Releasing.

    async def _fail(self, lease: Lease, error: str) -> None:
        """Record a failed attempt: the turn is offered again until it is quarantined."""
        TURNS_FAILED.inc()
        await self._abandon(lease, error)
        self._offer_later(lease)
        self._observer.left(lease.work.turn_id, again=True)

    async def _hand_back(self, lease: Lease) -> None:
        await self._abandon(lease, None)
        self._observer.left(lease.work.turn_id, again=True)
        await self._wakeup.offer(lease.session_id, tenant_id=lease.tenant_id)

    async def _abandon(self, lease: Lease, error: str | None) -> None:
        """Release the lane now, or remember to: otherwise our renewals would hold it forever."""
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
            "A lane was taken over; its work is discarded.",
            session=lease.session_id,
            turn=lease.work.turn_id,
            epoch=lease.epoch,
            token=lease.token,
        )

    # Deadline and cancellation.

    @asynccontextmanager
    async def _interruptible(self, lease: Lease, journal: Journal) -> AsyncGenerator[asyncio.Timeout]:
        """Limit the agent's time; yield the timeout.

        Raises TurnCancelled or DeadlineExceeded if the turn is stopped.
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
        """Read messages to a running turn, and stop it if they require that.

        A turn past that point ends normally. A call with a side effect is waited for, unless the turn was
        canceled.
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
    """Return why a turn must not be started, or None."""
    if work.cancelled:
        return TurnCancelled("The turn was cancelled.")
    if work.failure is not None:
        return GaveUp(work.failure)
    return DeadlineExceeded("The turn ran out of time.") if work.deadline_s <= 0 else None


def _describe(error: Exception) -> str:
    name = error.code if isinstance(error, ParleyError) else type(error).__name__
    return hide_secrets(f"{name}: {error}")[:ERROR_LENGTH]
