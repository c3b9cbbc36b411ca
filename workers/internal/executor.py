"""Carries out runs of Internal flows on this process's loop: their durable form.

Messages come in here and truth is in the store: what cannot be claimed is not done (IF-8 … IF-11).
"""

import asyncio
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from internal_flows.catalogue import Catalogue
from internal_flows.execution import (
    Proceed,
    StageFailed,
    end_item,
    end_run,
    fail_items,
    run_after_all,
    run_before_all,
    run_item,
)
from internal_flows.housekeeping.maintenance.states import REPAIR_STATE
from internal_flows.recording import record
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.adapters.task_sender import RunCanvas
from orchestrator.errors import ConfigurationError, NotFound, Unavailable
from orchestrator.ports.runs.records import Hint, NewRun, Started
from orchestrator.ports.runs.status import ItemStatus, Phase, RunStatus
from orchestrator.ports.runs.work import (
    ClaimedItem,
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
from workers.internal.dispatch import Dispatcher
from workers.internal.links import Link
from workers.internal.progress import ProgressEvents
from workers.internal.session_side import SessionSide
from workers.messages.flower_events import ShownTask

FLUSH_EVERY_S = 0.2
"""Ends of quick items are written together; a slow item's at once."""

_log = get_logger(__name__)


class _Fenced(Exception):
    """The claim was taken away; what was being done is dropped."""


class RunExecutor:
    """Belongs to one event loop.

    Args:
        local: whether this process may carry runs out itself when no message can be sent.
        backpressure: when housekeeping is deferred for turns.
        live: gets the progress of sessions' runs, besides their logs.
        show: shows in Flower what is carried out without a message.
        max_attempts: a run or item that ended its worker so often is given up.
        sessions: does for flows what they have no rights to do themselves.
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
        show: Callable[[ShownTask], AbstractContextManager[None]] | None = None,
    ) -> None:
        self.catalogue = catalogue
        self._freed: list[SessionId] = []
        self.backpressure = backpressure
        self._runs = runs
        self._work = work
        self._sessions = sessions
        self._dispatcher = Dispatcher(canvas, self._carry_out if local else None)
        self._show = show
        self._max_attempts = max_attempts
        self._progress = ProgressEvents(work, live)
        self._at_work: dict[int, asyncio.Task[object]] = {}
        self._fenced: set[int] = set()
        self._stopping = False

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        """Store the nodes of a graph and let workers know of it."""
        started = await self._runs.start(runs, key=key)
        self._dispatcher.begin(started)
        return started

    async def advance(self, link: Link) -> bool:
        """Do what a run has to do, until others are at it or nothing is left; whether it has ended here."""
        claim = await self._claim(link)
        if claim is None:
            return False
        with nullcontext() if link.task is None or self._show is None else self._show(link.task):
            while claim is not None:
                reached = await self._advance_once(claim, link.then)
                if isinstance(reached, RunEnd):
                    return True
                claim = await self._claim(link) if reached else None
        return False

    async def advance_all(self, links: Sequence[Link]) -> int:
        """Do what the links of a chain have to do, one after the other, as long as each ends here; how many did."""
        for ended, link in enumerate(links):
            if not await self.advance(link):
                return ended
        return len(links)

    async def items(self, run_id: str, flow: str, *, in_chord: bool) -> None:
        """Do items of a run, share after share. Within a chord, its body goes on with `after_all`."""
        ended = await self._items(run_id)
        if ended and not in_chord:
            await self.advance(Link(run_id, flow))

    async def renew(self) -> None:
        """Prolong what is held here, and stop what was taken away or cancelled."""
        for token in await self._work.renew():
            task = self._at_work.get(token)
            if task is not None and token not in self._fenced:
                self._fenced.add(token)
                task.cancel()

    async def sweep(self) -> int:
        """Take back what dead workers held, and send again what a lost message left hanging."""
        await self._repair_after_crash()
        hints = await self._work.sweep(waited_s=self._waited_s)
        self._dispatcher.send(self._dispatcher.carry_out_urgent(hints))
        return len(hints)

    def repair_later(self, sessions: Sequence[SessionId]) -> None:
        """Have sessions whose worker died looked through for what must not be, from the next sweep on."""
        if REPAIR_STATE in self.catalogue.graphs:
            self._freed += sessions

    def stop(self) -> None:
        """Take nothing more; shares of items end after the present one."""
        self._stopping = True

    async def drain(self, grace_s: float) -> None:
        """Wait for what is at work; the rest is left to other workers once its claims run out."""
        self.stop()
        self._dispatcher.cancel()
        if self._at_work:
            await asyncio.wait({*self._at_work.values()}, timeout=grace_s)

    async def _repair_after_crash(self) -> None:
        if not self._freed:
            return
        freed, self._freed = self._freed, []
        try:
            await self.start(self.catalogue.new_graph(REPAIR_STATE, parameters={"sessions": [*freed]}))
        except Unavailable:  # the next sweep tries again
            self._freed += freed
            raise

    @property
    def _waited_s(self) -> float:
        """How long housekeeping must have waited to be done now."""
        return 0.0 if self.backpressure is None else self.backpressure.waited_s

    async def _carry_out(self, hint: Hint) -> None:
        if self._stopping:
            return
        if hint.phase is Phase.ITEMS:
            await self.items(hint.run_id, hint.flow, in_chord=False)
        else:
            await self.advance(Link(hint.run_id, hint.flow))

    # The stages of a run.

    async def _claim(self, link: Link) -> RunClaim | None:
        if self._stopping:
            return None
        config = self.catalogue.configure(link.flow)
        return await self._work.claim(link.run_id, config, waited_s=self._waited_s)

    async def _advance_once(self, claim: RunClaim, then: Collection[str]) -> RunEnd | bool:
        """Do what was claimed; the end of the run, or whether there is more to do here."""
        try:
            with self._holding(claim.token), _traced(claim.facts, claim.phase.value):
                reached = await self._do_phase(claim)
                if isinstance(reached, RunEnd):
                    await self._finish(claim, reached, then)
                return reached
        except _Fenced:
            _log.warning("A run was taken away.", run=claim.facts.run_id, flow=claim.facts.flow)
        return False

    async def _do_phase(self, claim: RunClaim) -> RunEnd | bool:
        """Do `before_all` or `after_all`; the end of the run, or whether there is more to do here."""
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
            return await self._end_run(flow, facts, context, await self._work.outputs(facts.run_id))
        context = await self._sessions.brief(flow, context)
        recorded, calls = record(flow, context)
        result = await run_before_all(flow, recorded, claim.inputs)
        await self._sessions.hand_over(context)
        kept = calls.close(flow, context, result)
        before = ((Phase.BEFORE, kept),)
        if not isinstance(result, Proceed):
            return replace(end_run(flow, facts, result), records=before)
        if result.inputs:
            return await self._begin_items(claim, result.run, result.inputs, kept)
        context = replace(result.run, tools=context.tools)
        end = await self._end_run(flow, facts, context, [])  # under the same claim
        return replace(end, records=before + end.records)

    async def _end_run(
        self, flow: InternalFlow, facts: RunFacts, context: RunContext, outputs: list[Json]
    ) -> RunEnd:
        recorded, calls = record(flow, context)
        closing = await run_after_all(flow, recorded, outputs)
        await self._sessions.hand_over(context)
        records = ((Phase.AFTER, calls.close(flow, context, closing)),)
        return replace(end_run(flow, facts, closing), records=records)

    async def _begin_items(
        self, claim: RunClaim, context: RunContext, inputs: tuple[Json, ...], kept: Json
    ) -> bool:
        """Store the items; do a single one here, and several together with others."""
        facts, options = claim.facts, context.options
        if not await self._work.begin_items(claim, inputs, options.to_json(), context.data, kept):
            raise _Fenced
        if len(inputs) == 1:
            return await self._items(facts.run_id)
        hint = Hint(facts.run_id, facts.flow, Phase.ITEMS, facts.urgency)
        await self._dispatcher.spread(hint, min(options.concurrency, len(inputs)))
        return False

    async def _finish(self, claim: RunClaim, end: RunEnd, then: Collection[str]) -> None:
        hints = await self._work.finish(claim, end)
        if hints is None:
            raise _Fenced
        RUNS.labels(claim.facts.flow, end.status.value).inc()
        if end.status is RunStatus.FAILED:
            note_failure(end.status.value)
        self._dispatcher.send(tuple(hint for hint in hints if hint.run_id not in then))

    # Items.

    async def _items(self, run_id: str) -> bool:
        """Do shares of items until none is free; True when this ended the last item."""
        while not self._stopping:
            claim = await self._work.claim_items(run_id, waited_s=self._waited_s)
            if claim is None:
                return False
            try:
                with self._holding(claim.token), _traced(claim.facts, Phase.ITEMS.value):
                    recorded = await self._do_share(claim)
            except _Fenced:
                _log.warning("Items were taken away.", run=run_id, flow=claim.facts.flow)
                return False
            if recorded is Recorded.ALL:
                return True
        return False

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
            return end_item(item.position, StageFailed(_gave_up(self._max_attempts)))
        recorded, calls = record(flow, context)
        result = await run_item(flow, recorded, item.input)
        await self._sessions.hand_over(context)
        return replace(end_item(item.position, result), record=calls.close(flow, context, result))

    async def _record(self, claim: ItemsClaim, ends: list[ItemEnd], *, last: bool) -> Recorded:
        recorded = await self._work.record_items(claim, tuple(ends), last=last)
        if recorded is Recorded.LOST:
            raise _Fenced
        for end in ends:
            if end.status is ItemStatus.FAILED:
                note_failure(end.status.value)
            RUN_ITEMS.labels(claim.facts.flow, end.status.value).inc()
        if recorded is Recorded.MORE:
            await self._progress.publish(claim.facts)
        return recorded

    @contextmanager
    def _holding(self, token: int) -> Generator[None]:
        """While a claim is held here, losing it stops the task. Whatever else happens, it is given up."""
        task = asyncio.current_task()
        assert task is not None
        self._at_work[token] = task
        try:
            yield
        except asyncio.CancelledError as error:
            if token not in self._fenced:
                raise
            task.uncancel()
            raise _Fenced from error
        finally:
            del self._at_work[token]
            self._fenced.discard(token)
            self._work.give_up(token)


def _traced(facts: RunFacts, phase: str) -> AbstractContextManager[object]:
    """A phase of a run, in the trace of the turn that made it due, if one did."""
    name = f"{facts.flow} {phase}"
    if facts.turn_id is None:
        return span(name, run_id=facts.run_id)
    return turn_span(name, facts.turn_id, run_id=facts.run_id)


def _gave_up(attempts: int) -> str:
    return f"its worker ended {attempts} times while it was at work"
