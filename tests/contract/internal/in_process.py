"""An in-process runner of background flows: the reference for runs, chains and graphs (IF-10).

It stores everything in memory. Workers do the same durably.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from internal_flows.catalogue import Catalogue, Predecessors, in_order
from internal_flows.execution import Proceed, fail_items, run_after_all, run_before_all, run_item
from internal_flows.stages import InternalFlow, RunContext
from orchestrator.errors import IllegalTransition, NotFound, Refused
from orchestrator.ports.runs.records import ItemRecord, NewRun, Progress, RunRecord
from orchestrator.ports.runs.status import (
    ENDED,
    RUN_TRANSITIONS,
    SUCCEEDED,
    ItemStatus,
    Node,
    Phase,
    RedoStatus,
    RunStatus,
    count_manual,
    unblock,
)
from orchestrator.ports.runs.work import RunEnd, RunFacts
from orchestrator.types import new_id
from workers.internal.session_side import SessionSide

Sleep = Callable[[float], Awaitable[None]]


def require_run_transition(present: RunStatus, wanted: RunStatus) -> None:
    """Raise IllegalTransition if a run cannot change from one status to the other."""
    if wanted not in RUN_TRANSITIONS.get(present, ()):
        raise IllegalTransition(f"A run that is {present} cannot become {wanted}.")


@dataclass(slots=True)
class _Run:
    """A run with its items."""

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
            progress=self.progress,
        )

    @property
    def progress(self) -> Progress:
        def count(status: ItemStatus) -> int:
            return sum(item.status is status for item in self.items)

        ended = (count(status) for status in (ItemStatus.DONE, ItemStatus.SKIPPED, ItemStatus.FAILED))
        return Progress(len(self.items), *ended)

    def node(self, successors: tuple[str, ...] = ()) -> Node:
        return Node(self.given.flow, self.record.status, successors, self.given.on_failure)


class InProcessRunner:
    """An in-process runner.

    Args:
        sleep: waits before a rerun.
        sessions: for flows that use sessions.
    """

    def __init__(
        self, catalogue: Catalogue, *, sleep: Sleep = asyncio.sleep, sessions: SessionSide | None = None
    ) -> None:
        self._catalogue = catalogue
        self._sessions = sessions
        self._sleep = sleep
        self._runs: dict[str, _Run] = {}
        self._graphs: dict[str, Predecessors] = {}

    async def run(self, given: NewRun) -> list[RunRecord]:
        """Run a flow and its reruns. Return the records of the whole chain."""
        ended = await self.run_graph((replace(given, depends_on=()),))
        return self.chain(ended[given.flow].chain_id)

    async def run_graph(self, nodes: tuple[NewRun, ...]) -> dict[str, RunRecord]:
        """Run each node when its predecessors have ended. Return the last record of each node."""
        graph_id = new_id("graph")
        self._graphs[graph_id] = in_order({node.flow: node.depends_on for node in nodes})
        for node in nodes:
            self._add(node, graph_id)
        await self._carry_on(graph_id)
        return {name: run.record for name, run in self._latest(graph_id).items()}

    async def redo(self, run_id: str) -> list[RunRecord]:
        """Rerun a chain manually. Return the new records. Raises NotFound, Refused."""
        before = self._get(run_id).record
        chain = self.chain(before.chain_id)
        if chain[-1].status not in ENDED or chain[-1].redo is RedoStatus.SCHEDULED:
            raise Refused("The run has not ended yet; cancel it, or wait.")
        count = count_manual([record.redo_count for record in chain if record.status in SUCCEEDED])
        self._add(self._get(run_id).given, before.graph_id, before.chain_id, count)
        graph, latest = self._graphs[before.graph_id], self._latest(before.graph_id)
        nodes = {
            name: run.node(tuple(one for one, needed in graph.items() if name in needed))
            for name, run in latest.items()
        }
        for name in unblock(nodes, before.flow):
            latest[name].become(RunEnd(RunStatus.WAITING))
        await self._carry_on(before.graph_id)
        return self.chain(before.chain_id)[len(chain) :]

    def chain(self, chain_id: str) -> list[RunRecord]:
        """Return a run and its reruns, in order."""
        return [run.record for run in self._runs.values() if run.record.chain_id == chain_id]

    def items(self, run_id: str) -> list[ItemRecord]:
        """Return a run's items, by position. Raises NotFound."""
        return list(self._get(run_id).items)

    def _latest(self, graph_id: str) -> dict[str, _Run]:
        """Return the last run of each node, by name."""
        return {run.given.flow: run for run in self._runs.values() if run.record.graph_id == graph_id}

    async def _carry_on(self, graph_id: str) -> None:
        """Run nodes without open predecessors until none is left."""
        at_work: set[asyncio.Task[None]] = set()
        while True:
            latest = self._latest(graph_id)
            for name, needed in self._graphs[graph_id].items():
                if latest[name].record.status is RunStatus.WAITING:
                    self._release_or_block(latest[name], [latest[one].node() for one in needed])
                if latest[name].record.status is RunStatus.READY:
                    self._become(latest[name], RunStatus.RUNNING)
                    at_work.add(asyncio.create_task(self._run_chain(latest[name])))
            if not at_work:
                return
            ended, at_work = await asyncio.wait(at_work, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()

    def _release_or_block(self, run: _Run, predecessors: list[Node]) -> None:
        """Release a node, or block it. The reason prefers a failed predecessor to a blocked one."""
        causes = [node for node in predecessors if node.blocks_successors]
        if causes:
            cause = min(causes, key=lambda node: node.status is RunStatus.BLOCKED)
            run.become(RunEnd(RunStatus.BLOCKED, reason=f"{cause.name} is {cause.status}"))
        elif all(node.status in ENDED for node in predecessors):
            self._become(run, RunStatus.READY)

    async def _run_chain(self, run: _Run) -> None:
        """Run a run and its scheduled reruns."""
        while True:
            end = await self._run_once(run)
            if end.redo is not RedoStatus.SCHEDULED:
                run.become(end)
                return
            # Add the rerun before this run ends, so that successors wait for the whole chain.
            rerun = self._add(run.given, run.record.graph_id, run.record.chain_id, end.redo_count)
            self._become(rerun, RunStatus.READY, RunStatus.RUNNING)
            run.become(end)
            await self._sleep(end.redo_after_s)
            run = rerun

    async def _run_once(self, run: _Run) -> RunEnd:
        flow = self._catalogue.flow(run.given.flow)()
        facts = self._facts(run)
        context = self._catalogue.context(facts)
        if self._sessions is not None:
            context = await self._sessions.brief(flow, self._sessions.equip(context))
        result = await run_before_all(flow, context, run.given.inputs)
        if not isinstance(result, Proceed):
            return result
        run.items = [ItemRecord(place, ItemStatus.QUEUED, given) for place, given in enumerate(result.inputs)]
        await self._run_items(run, flow, result.run)
        if self._sessions is not None:
            await self._sessions.hand_over(context)
        failed = fail_items(run.progress)
        if failed is not None:
            return failed
        outputs = [item.output for item in run.items]
        return await run_after_all(flow, result.run, outputs)

    async def _run_items(self, run: _Run, flow: InternalFlow, context: RunContext) -> None:
        room = asyncio.Semaphore(context.options.concurrency)

        async def one(item: ItemRecord) -> None:
            async with room:
                ended = await run_item(flow, context, item.position, item.input)
            run.items[item.position] = replace(
                item, status=ended.status, output=ended.output, reason=ended.reason, error=ended.error
            )

        await asyncio.gather(*(one(item) for item in run.items))

    def _become(self, run: _Run, *statuses: RunStatus) -> None:
        for status in statuses:
            require_run_transition(run.record.status, status)
            run.record = replace(run.record, status=status)

    def _add(
        self, given: NewRun, graph_id: str, chain_id: str | None = None, redo_count: int | None = None
    ) -> _Run:
        run_id = new_id("run")
        record = RunRecord(
            run_id=run_id,
            tenant_id=given.tenant_id,
            flow=given.flow,
            status=RunStatus.WAITING,
            phase=Phase.BEFORE,
            chain_id=chain_id or run_id,
            graph_id=graph_id,
            session_id=given.session_id,
            redo_count=redo_count,
        )
        run = self._runs[run_id] = _Run(given, record)
        return run

    def _get(self, run_id: str) -> _Run:
        if run_id not in self._runs:
            raise NotFound("run", run_id)
        return self._runs[run_id]

    def _facts(self, run: _Run) -> RunFacts:
        return RunFacts(
            run_id=run.record.run_id,
            tenant_id=run.given.tenant_id,
            session_id=run.given.session_id,
            flow=run.given.flow,
            redo_count=run.record.redo_count,
            parameters=run.given.parameters,
            options=run.given.options,
            config=self._catalogue.configure(run.given.flow),
            data=None,
        )
