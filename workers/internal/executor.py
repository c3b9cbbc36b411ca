"""Carries out runs of Internal flows on this process's loop: the durable counterpart of the runner.

Messages come in here and truth is in the store: what cannot be claimed is not done (IF-8 … IF-11).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from internal_flows.catalogue import Catalogue
from internal_flows.execution import (
    Done,
    Proceed,
    RedoAsked,
    Skipped,
    StageFailed,
    run_after_all,
    run_before_all,
    run_item,
)
from internal_flows.in_process import items_failed
from internal_flows.redo import ceiling_of, end_with_redo
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.errors import NotFound, ParleyError, Unavailable
from orchestrator.ports.events import LiveEvents
from orchestrator.ports.runs.records import Hint, NewRun, Started
from orchestrator.ports.runs.status import ItemStatus, Phase, RunStatus, Urgency
from orchestrator.ports.runs.work import (
    ClaimedItem,
    ItemEnd,
    ItemsClaim,
    Recorded,
    RunClaim,
    RunEnd,
    RunFacts,
)
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import RUN_ITEMS, RUNS
from orchestrator.telemetry.traces import note_failure, span, turn_span
from orchestrator.types import Json
from workers.internal.backpressure import Backpressure
from workers.internal.progress import ProgressNotes

FLUSH_EVERY_S = 0.2
"""Ends of quick items are written together; a slow item's at once."""

_log = get_logger(__name__)


class Dispatch(Protocol):
    """How other workers are told."""

    async def hint(self, hint: Hint) -> None: ...

    async def spread(self, hint: Hint, holders: int) -> None: ...


class _Fenced(Exception):
    """The claim was taken away; what was being done is dropped."""


class InternalExecutor:
    """Belongs to one event loop.

    Args:
        local: whether this process may carry runs out itself when nobody can be told.
        backpressure: when housekeeping stands back for turns.
        live: hears of the progress of sessions' runs, besides their logs.
        max_attempts: a run or item that ended its worker so often is given up.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        runs: PostgresRuns,
        work: PostgresRunWork,
        dispatch: Dispatch,
        *,
        local: bool,
        max_attempts: int = 3,
        backpressure: Backpressure | None = None,
        live: LiveEvents | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._runs = runs
        self._work = work
        self._dispatch = dispatch
        self._local = local
        self._max_attempts = max_attempts
        self._backpressure = backpressure
        self._progress = ProgressNotes(work, live)
        self._at_work: dict[int, asyncio.Task[object]] = {}
        self._fenced: set[int] = set()
        self._later: set[asyncio.Task[None]] = set()
        self._stopping = False

    @property
    def catalogue(self) -> Catalogue:
        return self._catalogue

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        """Store the nodes of a graph and tell the workers."""
        started = await self._runs.start(runs, key=key)
        self._tell(started.hints)
        return started

    async def advance(self, run_id: str, flow: str) -> None:
        """Do what a run has to do, until others are at it or nothing is left."""
        while not self._stopping and await self._advance_once(run_id, flow):
            pass

    async def items(self, run_id: str, flow: str, *, in_chord: bool) -> None:
        """Do items of a run, share after share. Within a chord, its body goes on with `after_all`."""
        ended = await self._items(run_id)
        if ended and not in_chord:
            await self.advance(run_id, flow)

    async def renew(self) -> None:
        """Prolong what is held here, and stop what was taken away or cancelled."""
        for token in await self._work.renew():
            task = self._at_work.get(token)
            if task is not None and token not in self._fenced:
                self._fenced.add(token)
                task.cancel()

    async def sweep(self) -> int:
        """Take back what dead workers held, and send again what a lost message left hanging."""
        hints = await self._work.sweep(waited_s=self._waited_s)
        urgent = tuple(hint for hint in hints if hint.urgency is Urgency.URGENT and self._local)
        for hint in urgent:  # a turn waits: not behind tasks of housekeeping
            self._do_later(self._do_here(hint))
        self._tell(tuple(hint for hint in hints if hint not in urgent))
        return len(hints)

    async def look_at_turns(self) -> None:
        """Find out whether housekeeping has to stand back."""
        if self._backpressure is not None:
            await self._backpressure.measure()

    @property
    def _waited_s(self) -> float:
        """How long housekeeping must have waited to be done now."""
        return 0.0 if self._backpressure is None else self._backpressure.waited_s

    def stop(self) -> None:
        """Take nothing more; shares of items end after the present one."""
        self._stopping = True

    async def drain(self, grace_s: float) -> None:
        """Wait for what is at work; the rest is left to other workers once its claims run out."""
        self.stop()
        for task in self._later:
            task.cancel()
        waiting = {*self._at_work.values()}
        if waiting:
            await asyncio.wait(waiting, timeout=grace_s)

    # The stages of a run.

    async def _advance_once(self, run_id: str, flow: str) -> bool:
        """One claim; True when there is more to do here."""
        claim = await self._work.claim(run_id, self._catalogue.configure(flow), waited_s=self._waited_s)
        if claim is None:
            return False
        try:
            with self._holding(claim.token), _traced(claim.facts, claim.phase.value):
                match claim.phase:
                    case Phase.BEFORE:
                        return await self._before(claim)
                    case Phase.AFTER:
                        await self._after(claim)
                    case Phase.ITEMS:
                        raise AssertionError("items are claimed by themselves")
        except _Fenced:
            _log.warning("A run was taken away.", run=run_id, flow=flow)
        return False

    async def _before(self, claim: RunClaim) -> bool:
        facts = claim.facts
        prepared = self._prepare(claim)
        if isinstance(prepared, RunEnd):
            await self._finish(claim, prepared)
            return False
        flow, context = prepared
        match await run_before_all(flow, context, claim.inputs):
            case Skipped(reason):
                await self._finish(claim, RunEnd(RunStatus.SKIPPED, reason=reason))
            case RedoAsked():
                await self._finish(claim, self._redo(flow, claim))
            case StageFailed(error):
                await self._finish(claim, RunEnd(RunStatus.FAILED, error=error))
            case Proceed(settled, ()):
                await self._close(claim, flow, settled, [])
            case Proceed(settled, inputs):
                options = settled.options
                if not await self._work.begin_items(claim, inputs, options.to_json(), settled.data):
                    raise _Fenced
                if len(inputs) > 1:
                    hint = Hint(facts.run_id, facts.flow, Phase.ITEMS, facts.urgency)
                    await self._spread(hint, min(options.concurrency, len(inputs)))
                    return False
                return await self._items(facts.run_id)
        return False

    async def _after(self, claim: RunClaim) -> None:
        prepared = self._prepare(claim)
        if isinstance(prepared, RunEnd):
            await self._finish(claim, prepared)
            return
        flow, context = prepared
        if claim.items.failed:
            error = items_failed(claim.items.failed, claim.items.total)
            await self._finish(claim, RunEnd(RunStatus.FAILED, error=error))
            return
        await self._close(claim, flow, context, await self._work.outputs(claim.facts.run_id))

    async def _close(
        self, claim: RunClaim, flow: InternalFlow, context: RunContext, outputs: list[Json]
    ) -> None:
        """The last stage; without items it follows the first one under the same claim."""
        match await run_after_all(flow, context, outputs):
            case Done(value):
                await self._finish(claim, RunEnd(RunStatus.DONE, closing=value))
            case RedoAsked():
                await self._finish(claim, self._redo(flow, claim))
            case StageFailed(error):
                await self._finish(claim, RunEnd(RunStatus.FAILED, error=error))

    def _prepare(self, claim: RunClaim) -> tuple[InternalFlow, RunContext] | RunEnd:
        """The flow and what its stages are told, or the end of a run that cannot be carried out."""
        if claim.attempts > self._max_attempts:
            return RunEnd(RunStatus.FAILED, error=f"{claim.phase}: {_gave_up(self._max_attempts)}")
        try:
            return self._catalogue.flow(claim.facts.flow)(), self._catalogue.context(claim.facts)
        except (NotFound, ValueError) as error:
            return RunEnd(RunStatus.FAILED, error=f"{claim.phase}: {error}")

    def _redo(self, flow: InternalFlow, claim: RunClaim) -> RunEnd:
        return end_with_redo(claim.facts.redo_count, ceiling_of(claim.facts.config, flow.redo_ceiling))

    async def _finish(self, claim: RunClaim, end: RunEnd) -> None:
        hints = await self._work.finish(claim, end)
        if hints is None:
            raise _Fenced
        RUNS.labels(claim.facts.flow, end.status.value).inc()
        if end.status is RunStatus.FAILED:
            note_failure(end.status.value)
        self._tell(hints)

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
        flow, context = self._catalogue.flow(claim.facts.flow)(), self._catalogue.context(claim.facts)
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
        match await run_item(flow, context, item.input):
            case Done(value):
                return ItemEnd(item.position, ItemStatus.DONE, output=value)
            case Skipped(reason):
                return ItemEnd(item.position, ItemStatus.SKIPPED, reason=reason)
            case StageFailed(error):
                return ItemEnd(item.position, ItemStatus.FAILED, error=error)

    async def _record(self, claim: ItemsClaim, ends: list[ItemEnd], *, last: bool) -> Recorded:
        recorded = await self._work.record_items(claim, tuple(ends), last=last)
        if recorded is Recorded.LOST:
            raise _Fenced
        for end in ends:
            if end.status is ItemStatus.FAILED:
                note_failure(end.status.value)
            RUN_ITEMS.labels(claim.facts.flow, end.status.value).inc()
        if recorded is Recorded.MORE:
            await self._progress.note(claim.facts)
        return recorded

    # Holding and telling.

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

    def _tell(self, hints: tuple[Hint, ...]) -> None:
        """Tell the workers, each at its time, without waiting for it."""
        for hint in hints:
            self._do_later(self._tell_one(hint))

    async def _tell_one(self, hint: Hint) -> None:
        if hint.after_s > 0:
            await asyncio.sleep(hint.after_s)
        try:
            await self._dispatch.hint(hint)
        except Unavailable as error:
            _log.warning("A worker could not be told of a run.", run=hint.run_id, error=error)
            await self._do_here(hint)

    async def _spread(self, hint: Hint, holders: int) -> None:
        try:
            await self._dispatch.spread(hint, holders)
        except Unavailable as error:
            _log.warning("Workers could not be told of items.", run=hint.run_id, error=error)
            self._do_later(self._do_here(hint))

    async def _do_here(self, hint: Hint) -> None:
        """Without a broker nobody can be told: carry the run out in this process, if it is one for that."""
        if not self._local or self._stopping:
            return
        if hint.phase is Phase.ITEMS:
            await self.items(hint.run_id, hint.flow, in_chord=False)
        else:
            await self.advance(hint.run_id, hint.flow)

    def _do_later(self, what: Awaitable[None]) -> None:
        task = asyncio.ensure_future(_logged(what))
        self._later.add(task)
        task.add_done_callback(self._later.discard)


def _traced(facts: RunFacts, phase: str) -> AbstractContextManager[object]:
    """A phase of a run, in the trace of the turn that made it due, if one did."""
    name = f"{facts.flow} {phase}"
    if facts.turn_id is None:
        return span(name, run_id=facts.run_id)
    return turn_span(name, facts.turn_id, run_id=facts.run_id)


async def _logged(what: Awaitable[None]) -> None:
    try:
        await what
    except ParleyError as error:
        _log.warning("A run was interrupted; the reconciler comes back to it.", error=error)


def _gave_up(attempts: int) -> str:
    return f"its worker ended {attempts} times while it was at work"
