"""The in-process runner: the reference for what a run, a chain and a graph mean (IF-10).

It keeps everything in memory and forgets it with the process; workers do the same durably.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from internal_flows.catalogue import Catalogue
from internal_flows.execution import (
    Done,
    ItemEnding,
    Proceed,
    RedoAsked,
    Skipped,
    StageFailed,
    run_after_all,
    run_before_all,
    run_item,
)
from internal_flows.graph import Graph, make_graph
from internal_flows.plan import Plan, block_reason
from internal_flows.redo import PACE_S, ceiling_of, end_with_redo
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.errors import NotFound, Refused
from orchestrator.ports.runs.records import ItemRecord, NewRun, Progress, RunRecord
from orchestrator.ports.runs.status import (
    ENDED,
    SUCCEEDED,
    ItemStatus,
    Node,
    Phase,
    RedoStatus,
    RunStatus,
    count_by_hand,
    require_run_transition,
    unblock,
)
from orchestrator.ports.runs.work import RunEnd, RunFacts
from orchestrator.types import Json, new_id

Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class _Run:
    """One run and what is known of it."""

    given: NewRun
    record: RunRecord
    items: list[ItemRecord] = field(default_factory=list[ItemRecord])

    def become(self, end: RunEnd) -> None:
        require_run_transition(self.record.status, end.status)
        self.record = replace(
            self.record,
            status=end.status,
            closing=end.closing,
            reason=end.reason,
            error=end.error,
            redo=end.redo,
            progress=_progress(self.items),
        )


class InProcessRunner:
    """Args: `sleep` paces redos; a test may hand in one that only notes."""

    def __init__(self, catalogue: Catalogue, *, sleep: Sleep = asyncio.sleep) -> None:
        self._catalogue = catalogue
        self._sleep = sleep
        self._runs: dict[str, _Run] = {}
        self._chains: dict[str, list[str]] = {}
        self._graphs: dict[str, Graph] = {}

    async def run(self, given: NewRun) -> list[RunRecord]:
        """Run one flow, and again as long as it asks; the records of the whole chain."""
        first = self._add(given)
        await self._carry_on(first)
        return self.chain(first.record.chain_id)

    async def run_graph(self, nodes: tuple[NewRun, ...]) -> dict[str, RunRecord]:
        """Run nodes as soon as what they depend on has ended; the last record of each."""
        graph = make_graph({node.flow: node.depends_on for node in nodes})
        plan = Plan(graph)
        graph_id = new_id("graph")
        self._graphs[graph_id] = graph
        runs = {node.flow: self._add(node, graph_id=graph_id, status=RunStatus.WAITING) for node in nodes}
        at_work: dict[asyncio.Task[RunRecord], str] = {}

        def launch(names: tuple[str, ...]) -> None:
            for name in names:
                runs[name].record = replace(runs[name].record, status=RunStatus.READY)
                at_work[asyncio.create_task(self._carry_on(runs[name]))] = name

        launch(plan.begin())
        while at_work:
            ended, _ = await asyncio.wait(at_work, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                name = at_work.pop(task)
                released = plan.end(name, task.result().status, runs[name].given.on_failure)
                launch(released.ready)
                for blocked, reason in released.blocked:
                    runs[blocked].become(RunEnd(RunStatus.BLOCKED, reason=reason))
        return {name: self.chain(run.record.chain_id)[-1] for name, run in runs.items()}

    async def redo(self, run_id: str) -> list[RunRecord]:
        """Run a chain once more by hand; the records from there on. Raises NotFound, Refused."""
        before = self._get(run_id)
        chain = self._chains[before.record.chain_id]
        records = self.chain(before.record.chain_id)
        if records[-1].status not in ENDED or records[-1].redo is RedoStatus.SCHEDULED:
            raise Refused("The run has not ended yet; cancel it, or wait.")
        count = count_by_hand([record.redo_count for record in records if record.status in SUCCEEDED])
        again = self._add(
            before.given,
            chain_id=before.record.chain_id,
            graph_id=before.record.graph_id,
            redo_count=count,
        )
        made = len(chain) - 1
        freed = self._unblock(before.record.graph_id, before.given.flow)
        await self._carry_on(again)
        await self._take_up(freed)
        return self.chain(before.record.chain_id)[made:]

    def chain(self, chain_id: str) -> list[RunRecord]:
        """A run and its reruns, in order."""
        return [self._runs[run_id].record for run_id in self._chains[chain_id]]

    def items(self, run_id: str) -> list[ItemRecord]:
        """The items of a run, by position. Raises NotFound."""
        return list(self._get(run_id).items)

    def _unblock(self, graph_id: str, again: str) -> list[_Run]:
        """Nodes that were left unrun and may wait again, each after those that it depends on."""
        graph = self._graphs.get(graph_id)
        if graph is None:
            return []
        latest = self._latest(graph_id)
        nodes = {
            name: Node(name, run.record.status, graph.successors(name), run.given.on_failure)
            for name, run in latest.items()
        }
        freed = unblock(nodes, again)
        for name in freed:
            latest[name].become(RunEnd(RunStatus.WAITING))
        return [latest[name] for name in graph.predecessors if name in freed]

    async def _take_up(self, waiting: list[_Run]) -> None:
        """Run what is released, one after the other; what the new run failed again stays blocked."""
        for run in waiting:
            latest = self._latest(run.record.graph_id)
            needed = self._graphs[run.record.graph_id].predecessors[run.given.flow]
            cause = next(
                (one for one in needed if _blocks(latest[one])),
                None,
            )
            if cause is not None:
                reason = block_reason(cause, latest[cause].record.status)
                run.become(RunEnd(RunStatus.BLOCKED, reason=reason))
                continue
            run.record = replace(run.record, status=RunStatus.READY)
            await self._carry_on(run)

    def _latest(self, graph_id: str) -> dict[str, _Run]:
        """The last run of each node, by name."""
        return {run.given.flow: run for run in self._runs.values() if run.record.graph_id == graph_id}

    async def _carry_on(self, run: _Run) -> RunRecord:
        """Run, and schedule the reruns: here, and nowhere inside a run."""
        while True:
            await self._once(run)
            record = run.record
            if record.redo is not RedoStatus.SCHEDULED:
                return record
            following = (record.redo_count or 0) + 1
            await self._sleep(PACE_S)
            run = self._add(
                run.given, chain_id=record.chain_id, graph_id=record.graph_id, redo_count=following
            )

    async def _once(self, run: _Run) -> None:
        require_run_transition(run.record.status, RunStatus.RUNNING)
        run.record = replace(run.record, status=RunStatus.RUNNING)
        flow = self._catalogue.flow(run.given.flow)()
        config = self._catalogue.configure(run.given.flow)
        ceiling = ceiling_of(config, flow.redo_ceiling)
        context = self._catalogue.context(_facts(run, config))
        match await run_before_all(flow, context, run.given.inputs):
            case Skipped(reason):
                run.become(RunEnd(RunStatus.SKIPPED, reason=reason))
            case RedoAsked():
                run.become(end_with_redo(run.record.redo_count, ceiling))
            case StageFailed(error):
                run.become(RunEnd(RunStatus.FAILED, error=error))
            case Proceed(context, inputs):
                run.items = [
                    ItemRecord(position, ItemStatus.QUEUED, given) for position, given in enumerate(inputs)
                ]
                await self._items(run, flow, context)
                await self._after(run, flow, context, ceiling)

    async def _items(self, run: _Run, flow: InternalFlow, context: RunContext) -> None:
        room = asyncio.Semaphore(context.options.concurrency)

        async def one(item: ItemRecord) -> None:
            async with room:
                ending = await run_item(flow, context, item.input)
            run.items[item.position] = end_item(item, ending)

        await asyncio.gather(*(one(item) for item in run.items))

    async def _after(self, run: _Run, flow: InternalFlow, context: RunContext, ceiling: int | None) -> None:
        failed = _progress(run.items).failed
        if failed:
            run.become(RunEnd(RunStatus.FAILED, error=items_failed(failed, len(run.items))))
            return
        match await run_after_all(flow, context, [item.output for item in run.items]):
            case Done(value):
                run.become(RunEnd(RunStatus.DONE, closing=value))
            case RedoAsked():
                run.become(end_with_redo(run.record.redo_count, ceiling))
            case StageFailed(error):
                run.become(RunEnd(RunStatus.FAILED, error=error))

    def _add(
        self,
        given: NewRun,
        *,
        chain_id: str | None = None,
        graph_id: str | None = None,
        redo_count: int | None = None,
        status: RunStatus = RunStatus.READY,
    ) -> _Run:
        run_id = new_id("run")
        record = RunRecord(
            run_id=run_id,
            tenant_id=given.tenant_id,
            flow=given.flow,
            status=status,
            phase=Phase.BEFORE,
            chain_id=chain_id or run_id,
            graph_id=graph_id or run_id,
            session_id=given.session_id,
            redo_count=redo_count,
        )
        run = self._runs[run_id] = _Run(given, record)
        self._chains.setdefault(record.chain_id, []).append(run_id)
        return run

    def _get(self, run_id: str) -> _Run:
        if run_id not in self._runs:
            raise NotFound("run", run_id)
        return self._runs[run_id]


def end_item(item: ItemRecord, ending: ItemEnding) -> ItemRecord:
    """What is recorded of an item."""
    match ending:
        case Done(value):
            return replace(item, status=ItemStatus.DONE, output=value)
        case Skipped(reason):
            return replace(item, status=ItemStatus.SKIPPED, reason=reason)
        case StageFailed(error):
            return replace(item, status=ItemStatus.FAILED, error=error)


def items_failed(failed: int, total: int) -> str:
    """The error of a run whose items failed; its `after_all` is not entered."""
    return f"{failed} of {total} items failed"


def _blocks(run: _Run) -> bool:
    return Node(run.given.flow, run.record.status, (), run.given.on_failure).stands_in_the_way


def _facts(run: _Run, config: dict[str, Json]) -> RunFacts:
    return RunFacts(
        run_id=run.record.run_id,
        tenant_id=run.given.tenant_id,
        session_id=run.given.session_id,
        flow=run.given.flow,
        redo_count=run.record.redo_count,
        parameters=run.given.parameters,
        options=run.given.options,
        config=config,
        data=None,
    )


def _progress(items: list[ItemRecord]) -> Progress:
    def count(status: ItemStatus) -> int:
        return sum(item.status is status for item in items)

    return Progress(len(items), count(ItemStatus.DONE), count(ItemStatus.SKIPPED), count(ItemStatus.FAILED))
