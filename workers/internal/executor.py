"""Execute background runs durably on this process's event loop (IF-8 … IF-11).

Messages only request execution. The executor first claims the run in the store.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager

from internal_flows.catalogue import Catalogue
from internal_flows.execution import (
    Proceed,
    fail_items,
    run_after_all,
    run_before_all,
    run_item,
)
from internal_flows.maintenance.states import REPAIR_STATE
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.errors import ConfigurationError, NotFound, Unavailable
from orchestrator.ports.runs.records import Hint, NewRun, Started
from orchestrator.ports.runs.status import ENDED, ItemStatus, Phase, RedoStatus, RunStatus, Urgency
from orchestrator.ports.runs.work import (
    ClaimedItem,
    Deferred,
    ItemEnd,
    ItemsClaim,
    Recorded,
    RunClaim,
    RunEnd,
    RunFacts,
)
from orchestrator.ports.turns import LiveEvents
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import RUN_ITEMS, RUNS
from orchestrator.telemetry.traces import note_failure, span, turn_span
from orchestrator.types import Json, SessionId
from workers.internal.backpressure import Backpressure
from workers.internal.canvas import RunCanvas
from workers.internal.dispatch import Dispatcher
from workers.internal.held_work import Fenced, HeldWork
from workers.internal.outcomes import Elsewhere, Ended, InShares, Later, Outcome, Rerun, ended
from workers.internal.progress import ProgressEvents
from workers.internal.session_side import SessionSide

FLUSH_EVERY_S = 0.2
"""Minimum interval between writes of item results within a share, in seconds."""
DEFERRED_FOR_S = 1.0
"""Delay before a deferred run's task is retried, in seconds."""
WAITED_FOR_S = 1.0
"""Maximum time that a task sleeps until its run is due, in seconds.

For longer waits, Celery retries the task.
"""

_log = get_logger(__name__)


class RunExecutor:
    """An executor of runs, bound to one event loop.

    Args:
        local: True if this process can execute runs when messages can't be sent.
        backpressure: defers maintenance while turns wait, or None to never defer.
        live: publishes logged progress events to listeners, or None to only log them.
        max_attempts: maximum number of attempts at a phase or item. After that, the phase or item fails.
        sessions: gives flows, which have no rights on sessions, limited access to them.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        runs: PostgresRuns,
        work: PostgresRunWork,
        canvas: RunCanvas,
        sessions: SessionSide,
        *,
        local: bool,
        max_attempts: int = 3,
        backpressure: Backpressure | None = None,
        live: LiveEvents | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.canvas = canvas
        self._freed: list[SessionId] = []
        self._reported: list[str] = []
        self.backpressure = backpressure
        self._runs = runs
        self._work = work
        self._sessions = sessions
        self._dispatcher = Dispatcher(canvas, self.execute_here if local else None)
        self._max_attempts = max_attempts
        self._progress = ProgressEvents(work, live)
        self._held = HeldWork(work)
        self._stopping = False

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        """Store a graph's runs and send the runs that are ready. `key`: idempotency key, or None."""
        started = await self._runs.start(runs, key=key)
        self._dispatcher.send(started.hints)
        return started

    async def run(
        self, run_id: str, flow: str, *, carried: frozenset[str] = frozenset(), root: str | None = None
    ) -> Outcome:
        """Execute a run until it ends or this task cannot continue it. Return its outcome.

        `carried`: IDs of the runs that Celery sends after this task. The executor sends all other released
        runs. `root`: root task ID for the tasks of these other runs, or None to let Celery choose the ID.
        """
        while True:
            claim = await self._claim(run_id, flow)
            if claim is None:
                outcome = await self._find_outcome(run_id)
            else:
                outcome = await self._advance_once(claim, carried, root)
            if outcome is not None:
                return outcome

    async def items(self, run_id: str, flow: str, *, task_id: str | None, in_chord: bool) -> Later | None:
        """Execute shares of a run's items until no unclaimed share remains.

        Return a deferral if the task should be retried later; otherwise, None. Outside a chord, send the
        run's task after the last item. `task_id`: ID of the Celery task for the items.
        """
        done = await self._items(run_id, task_id)
        if isinstance(done, Later):
            return done
        if done and not in_chord:
            state = await self._work.state(run_id)
            if state is not None:
                self._dispatcher.send((Hint(run_id, flow, state.urgency),))
        return None

    async def execute_here(self, hint: Hint) -> None:
        """Execute a run without its Celery task. The task reports the run's end later."""
        run_id = hint.run_id
        while not self._stopping:
            match await self.run(run_id, hint.flow):
                case InShares():
                    if isinstance(await self._items(run_id, None), Later):
                        return
                case Rerun(hint=rerun):
                    await asyncio.sleep(rerun.after_s)
                    run_id = rerun.run_id
                case _:
                    return

    def note_reported(self, run_id: str) -> None:
        """Record that an ended run's task has reported the end. The next sweep stores this fact."""
        self._reported.append(run_id)

    async def renew(self) -> None:
        await self._held.renew()

    async def sweep(self) -> int:
        """Recover the work of dead workers and resend lost messages. Return the number of resent runs."""
        await self._repair_after_crash()
        await self._write_reported()
        swept = await self._work.sweep(waited_s=self._waited_s)
        for run in swept.unrun:
            await self.canvas.store_end(run)
            self._reported.append(run.run_id)
        self._dispatcher.send_again(swept)
        return len(swept.hints)

    def repair_later(self, sessions: Sequence[SessionId]) -> None:
        """Check a dead worker's sessions in the next sweep, if the repair flow is enabled."""
        if REPAIR_STATE in self.catalogue.graphs:
            self._freed += sessions

    def stop(self) -> None:
        """Stop accepting work, and end shares of items after the current item."""
        self._stopping = True

    async def drain(self, grace_s: float) -> None:
        """Wait up to `grace_s` seconds for running work. Other workers resume the rest after its claims expire."""
        self.stop()
        self._dispatcher.cancel()
        await self._held.drain(grace_s)
        await self._write_reported()

    async def _repair_after_crash(self) -> None:
        if not self._freed:
            return
        freed, self._freed = self._freed, []
        try:
            await self.start(self.catalogue.new_graph(REPAIR_STATE, parameters={"sessions": [*freed]}))
        except Unavailable:  # the next sweep tries again
            self._freed += freed
            raise

    async def _write_reported(self) -> None:
        reported, self._reported = self._reported, []
        try:
            if reported:
                await self._work.note_reported(reported)
        except Unavailable:
            self._reported += reported
            raise

    @property
    def _waited_s(self) -> float:
        return 0.0 if self.backpressure is None else self.backpressure.waited_s

    # Stages of a run

    async def _claim(self, run_id: str, flow: str) -> RunClaim | None:
        if self._stopping:
            return None
        config = self.catalogue.configure(flow)
        return await self._work.claim(run_id, config, waited_s=self._waited_s)

    async def _find_outcome(self, run_id: str) -> Outcome | None:
        """Return the outcome of a run that cannot be claimed now, or None if another attempt may succeed."""
        state = await self._work.state(run_id)
        if state is None or state.status is RunStatus.WAITING:
            return Elsewhere()
        if state.status in ENDED:
            told = state.reported and state.began
            return Elsewhere() if told else ended(run_id, state.status, state.why)
        if state.held:
            return Elsewhere()
        if self._stopping:
            return Later(DEFERRED_FOR_S)
        if state.phase is Phase.ITEMS:
            return await self._do_items(run_id, state.urgency, state.holders or 1)
        if state.waits_s > WAITED_FOR_S:
            return Later(state.waits_s)
        if state.waits_s > 0:
            await asyncio.sleep(state.waits_s)
            return None
        return Later(DEFERRED_FOR_S)

    async def _do_items(self, run_id: str, urgency: Urgency, holders: int) -> InShares | Later | None:
        """Execute the items here, or return `InShares` if several tasks can share them.

        Return None if the run can continue in this process.
        """
        if holders > 1:
            return InShares(run_id, urgency, holders)
        done = await self._items(run_id, None)
        return done if isinstance(done, Later) else None

    async def _advance_once(
        self, claim: RunClaim, carried: frozenset[str], root: str | None
    ) -> Outcome | None:
        """Execute the claimed phase. Return None if the caller should try to claim the run again."""
        try:
            with self._held.holding(claim.token), _traced(claim.facts, claim.phase.value):
                reached = await self._do_phase(claim)
                if isinstance(reached, RunEnd):
                    return await self._finish(claim, reached, carried, root)
        except Fenced:
            _log.warning(
                "Lost the claim on a run to another worker.", run=claim.facts.run_id, flow=claim.facts.flow
            )
            return None
        return reached

    async def _do_phase(self, claim: RunClaim) -> RunEnd | InShares | Later | None:
        """Execute `before_all` or `after_all`.

        Return the run's end, `InShares` if several tasks can share the items, a deferral, or None if the run can
        continue in this process.
        """
        facts = claim.facts
        if claim.attempts > self._max_attempts:
            return RunEnd(RunStatus.FAILED, error=f"{claim.phase}: {_gave_up(self._max_attempts)}")
        try:
            flow = self.catalogue.flow(facts.flow)()
            context = self._sessions.equip(self.catalogue.context(facts))
        except (NotFound, ConfigurationError, ValueError) as error:
            return RunEnd(RunStatus.FAILED, error=f"{claim.phase}: {error}")
        if claim.phase is Phase.AFTER:
            if (failed := fail_items(claim.items)) is not None:
                return failed
            return await self._end_run(flow, context, await self._work.outputs(facts.run_id))
        context = await self._sessions.brief(flow, context)
        result = await run_before_all(flow, context, claim.inputs)
        await self._sessions.hand_over(context)
        if not isinstance(result, Proceed):
            return result
        if result.inputs:
            return await self._begin_items(claim, result.run, result.inputs)
        return await self._end_run(flow, result.run, [])  # under the same claim

    async def _end_run(self, flow: InternalFlow, context: RunContext, outputs: list[Json]) -> RunEnd:
        end = await run_after_all(flow, context, outputs)
        await self._sessions.hand_over(context)
        return end

    async def _begin_items(
        self, claim: RunClaim, context: RunContext, inputs: tuple[Json, ...]
    ) -> InShares | Later | None:
        """Store the items, then return the result of `_do_items`."""
        facts, options = claim.facts, context.options
        if not await self._work.begin_items(claim, inputs, options.to_json(), context.data):
            raise Fenced
        return await self._do_items(facts.run_id, facts.urgency, min(options.concurrency, len(inputs)))

    async def _finish(
        self, claim: RunClaim, end: RunEnd, carried: frozenset[str], root: str | None
    ) -> Ended | Rerun:
        hints = await self._work.finish(claim, end)
        if hints is None:
            raise Fenced
        RUNS.labels(claim.facts.flow, end.status.value).inc()
        if end.status is RunStatus.FAILED:
            note_failure(end.status.value)
        if end.redo is RedoStatus.SCHEDULED:
            return Rerun(hints[0])
        self._dispatcher.send([hint for hint in hints if hint.run_id not in carried], root=root)
        return ended(claim.facts.run_id, end.status, end.error or end.reason)

    # Items

    async def _items(self, run_id: str, task_id: str | None) -> Later | bool:
        """Execute shares of items while unclaimed shares remain. Return True if the last item ended here.

        `task_id`: ID of a task that only executes items, or None in a run's task.
        """
        while not self._stopping:
            claim = await self._work.claim_items(run_id, task_id=task_id, waited_s=self._waited_s)
            if claim is None:
                return False
            if isinstance(claim, Deferred):
                return Later(DEFERRED_FOR_S)
            try:
                with self._held.holding(claim.token), _traced(claim.facts, Phase.ITEMS.value):
                    recorded = await self._do_share(claim)
            except Fenced:
                _log.warning("Lost the claim on items to another worker.", run=run_id, flow=claim.facts.flow)
                return False
            if recorded is Recorded.ALL:
                return True
        return Later(DEFERRED_FOR_S)

    async def _do_share(self, claim: ItemsClaim) -> Recorded:
        flow = self.catalogue.flow(claim.facts.flow)()
        context = self._sessions.equip(self.catalogue.context(claim.facts))
        now = asyncio.get_running_loop().time
        ends: list[ItemEnd] = []
        flushed_at = now()
        for item in claim.items:
            ends.append(await self._do_item(flow, context, item))
            if item is claim.items[-1] or self._stopping:
                break
            if now() - flushed_at >= FLUSH_EVERY_S:
                await self._record(claim, ends, last=False)
                ends, flushed_at = [], now()
        return await self._record(claim, ends, last=True)

    async def _do_item(self, flow: InternalFlow, context: RunContext, item: ClaimedItem) -> ItemEnd:
        if item.attempts > self._max_attempts:
            return ItemEnd(item.position, ItemStatus.FAILED, error=_gave_up(self._max_attempts))
        end = await run_item(flow, context, item.position, item.input)
        await self._sessions.hand_over(context)
        return end

    async def _record(self, claim: ItemsClaim, ends: list[ItemEnd], *, last: bool) -> Recorded:
        recorded = await self._work.record_items(claim, tuple(ends), last=last)
        if recorded is Recorded.LOST:
            raise Fenced
        for end in ends:
            if end.status is ItemStatus.FAILED:
                note_failure(end.status.value)
            RUN_ITEMS.labels(claim.facts.flow, end.status.value).inc()
        if recorded is Recorded.MORE:
            await self._progress.publish(claim.facts)
        return recorded


def _traced(facts: RunFacts, phase: str) -> AbstractContextManager[object]:
    """Open a span for a phase, within the trace of the turn that triggered the run, if any."""
    name = f"{facts.flow} {phase}"
    if facts.turn_id is None:
        return span(name, run_id=facts.run_id)
    return turn_span(name, facts.turn_id, run_id=facts.run_id)


def _gave_up(attempts: int) -> str:
    return f"its worker crashed {attempts} times while running it"
