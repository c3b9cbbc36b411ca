"""Refresh the summary and memory that a turn needs (IF-13).

The refresh is an urgent background run, on another worker or in this process.
"""

import asyncio
from dataclasses import replace
from typing import Final

from internal_flows.session.summarize_session import SUMMARY_NOTE
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.ports.memory.scratchpad import EntryKind, Scratchpad
from orchestrator.ports.runs.records import Hint
from orchestrator.ports.runs.status import SUCCEEDED, RunStatus, Urgency
from orchestrator.ports.summary_refresh import SUMMARY_DUE, Renewed
from orchestrator.types import JsonObject, SessionId, TenantId, is_object
from workers.internal.executor import RunExecutor

SUMMARIZE: Final = "summarize_session"
REMEMBER: Final = "distil_preferences"
NEWEST_RUNS = 10


class RunSummaryRefresh:
    def __init__(self, executor: RunExecutor, runs: PostgresRuns, scratchpad: Scratchpad) -> None:
        self._executor = executor
        self._runs = runs
        self._scratchpad = scratchpad

    async def remembered_through(self, tenant_id: TenantId, session_id: SessionId) -> int:
        latest = await self._runs.list(tenant_id, session_id=session_id, flow=REMEMBER, limit=NEWEST_RUNS)
        done = next((run for run in latest if run.status in SUCCEEDED), None)
        if done is None:
            return 0
        nodes = await self._runs.graph(tenant_id, done.graph_id)
        summaries = [run.run_id for run in nodes if run.flow == SUMMARIZE and run.status is RunStatus.DONE]
        output = await self._output(tenant_id, summaries[-1]) if summaries else None
        return 0 if output is None else output["through_turn"]

    async def renew(
        self, tenant_id: TenantId, session_id: SessionId, *, memory: bool, key: str, here: bool, wait_s: float
    ) -> Renewed | None:
        nodes = self._executor.catalogue.new_graph(
            SUMMARY_DUE, tenant_id=tenant_id, session_id=session_id, flight=session_id
        )
        started = await self._executor.start(
            tuple(replace(node, urgency=Urgency.URGENT) for node in nodes), key=key
        )
        wanted = [
            name for name in ((SUMMARIZE, REMEMBER) if memory else (SUMMARIZE,)) if name in started.runs
        ]
        try:
            async with asyncio.timeout(wait_s):
                for flow in wanted:
                    run_id = started.runs[flow]
                    # `execute_here` returns immediately if another worker holds the run.
                    if here and await self._runs.wait(tenant_id, run_id, 0.0) is None:
                        await self._executor.execute_here(Hint(run_id, flow, Urgency.URGENT))
                    if await self._runs.wait(tenant_id, run_id, wait_s) is None:
                        return None
        except TimeoutError:
            return None
        run_id = started.runs.get(SUMMARIZE)
        output = None if run_id is None else await self._output(tenant_id, run_id)
        return None if output is None else await self._read(tenant_id, session_id, output)

    async def _output(self, tenant_id: TenantId, run_id: str) -> JsonObject | None:
        """Return the output of a summary run's only item, or None if there is no output yet."""
        items = await self._runs.items(tenant_id, run_id, limit=1)
        return items[0].output if items and is_object(items[0].output) else None

    async def _read(self, tenant_id: TenantId, session_id: SessionId, output: JsonObject) -> Renewed:
        """Return the new summary from the scratchpad.

        The session lane stores a proposed summary only after this turn.
        """
        notes = await self._scratchpad.read(
            tenant_id, session_id, kinds=frozenset({EntryKind.SUMMARY}), touch=False
        )
        told = {note.entry_id: note.text for note in notes}
        return Renewed(output["through_turn"], told.get(SUMMARY_NOTE))
