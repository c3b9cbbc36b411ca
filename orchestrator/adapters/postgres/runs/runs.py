from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg
from sqlalchemy import ColumnElement, Select, desc, func, select

from orchestrator.adapters.postgres.hot_connections import HotConnection
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.ending import add_rerun, end_run
from orchestrator.adapters.postgres.runs.starting import (
    ATTEMPTS,
    STARTED_BY_OTHERS,
    find_present,
    identify,
    remember_again,
    store_graph,
)
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import internal_items, internal_runs, record_of
from orchestrator.errors import NotFound, Refused, Unavailable
from orchestrator.ports.runs.records import GraphNode, Hint, ItemRecord, NewRun, Progress, RunRecord, Started
from orchestrator.ports.runs.status import (
    ENDED,
    SUCCEEDED,
    ItemStatus,
    Node,
    OnFailure,
    RunStatus,
    Urgency,
    count_manual,
    unblock,
)
from orchestrator.ports.runs.work import RunEnd
from orchestrator.types import DEFAULT_TENANT, SessionId, TenantId

LOOK_EVERY_S = 0.02
LOOK_AT_MOST_EVERY_S = 0.2


class PostgresRuns:
    """A PostgreSQL store of background runs, for senders and operators. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        """Store the nodes of a graph. Calls with the same `key` store the graph only once.

        If a node's flow is already running, the node joins that run, and its dependents wait for it. If that
        run may already have read its inputs, the whole graph runs again, once, after that run ends (IF-11).
        """
        graph_id, ids = identify(runs, key)
        present: dict[str, str] = {}
        hints: tuple[Hint, ...] = ()
        again = False
        for _ in range(ATTEMPTS):
            missing = tuple(run for run in runs if run.flow not in present)
            try:
                async with self._database.hot_transaction() as transaction:
                    if missing:
                        hints += await store_graph(transaction, missing, graph_id, ids, present)
                    remembered = not again or await remember_again(transaction, runs, {**ids, **present})
            except psycopg.errors.UniqueViolation:
                remembered = False
            if remembered and not missing:
                return Started(present, hints, joined=True)
            if remembered:
                started = {run.flow: ids[run.flow] for run in missing}
                return Started(started | present, hints)
            async with self._database.hot_transaction() as transaction:
                present, again = await find_present(transaction, runs, ids)
        raise Unavailable(STARTED_BY_OTHERS)

    async def fire(self, job: str, due_at: datetime, next_due_at: datetime, runs: tuple[NewRun, ...]) -> bool:
        """Start a scheduled job's runs. Return False if this firing was already claimed (IF-15).

        If runs of an earlier firing are still active, the new firing starts nothing and returns False
        (IF-11).
        """
        graph_id, ids = identify(runs, f"schedule:{job}:{due_at.timestamp()}")
        firing = {"tenant_id": DEFAULT_TENANT, "job": job, "due_at": due_at, "next_due_at": next_due_at}
        try:
            async with self._database.hot_transaction() as transaction:
                if await transaction.fetch_one(statement("claim_firing"), firing) is None:
                    return False
                await store_graph(transaction, runs, graph_id, ids)
        except psycopg.errors.UniqueViolation:
            await self._database.fetch_one(statement("claim_firing"), firing)
            return False
        return True

    async def now(self) -> float:
        """Return the database time in Unix seconds."""
        row = await self._database.fetch_one("SELECT extract(epoch FROM clock_timestamp())::float8", {})
        assert row is not None
        return row[0]

    async def get(self, tenant_id: TenantId, run_id: str) -> RunRecord:
        """Return a run. Raises NotFound."""
        found = await self._read(tenant_id, internal_runs.c.run_id == run_id)
        if not found:
            raise NotFound("run", run_id)
        return found[0]

    async def wait(self, tenant_id: TenantId, run_id: str, timeout_s: float) -> RunRecord | None:
        """Wait up to `timeout_s` seconds for a run to end.

        Return the run, or None if it has not ended. Raises NotFound.
        """
        now = asyncio.get_running_loop().time
        ends_at, pause = now() + timeout_s, LOOK_EVERY_S
        while (record := await self.get(tenant_id, run_id)).status not in ENDED:
            left = ends_at - now()
            if left <= 0:
                return None
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, LOOK_AT_MOST_EVERY_S)
        return record

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        flow: str | None = None,
        status: RunStatus | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        """Return up to `limit` runs, newest first."""
        wanted = {"session_id": session_id, "flow": flow, "status": status}
        return await self._read(
            tenant_id,
            *(internal_runs.c[name] == str(value) for name, value in wanted.items() if value is not None),
            newest_first=limit,
        )

    async def chain(self, tenant_id: TenantId, chain_id: str) -> list[RunRecord]:
        """Return a run and its reruns, in order."""
        return await self._read(tenant_id, internal_runs.c.chain_id == chain_id)

    async def graph(self, tenant_id: TenantId, graph_id: str) -> list[RunRecord]:
        """Return all runs in a graph, including reruns, in creation order."""
        return await self._read(tenant_id, internal_runs.c.graph_id == graph_id)

    async def behind(self, run_ids: Sequence[str]) -> list[GraphNode]:
        """Return the runs in `run_ids` and all runs that wait for them, directly or indirectly."""
        rows = await self._database.fetch_all(statement("runs_behind"), {"run_ids": [*run_ids]})
        return [
            GraphNode(
                run_id, flow, Urgency(urgency), task_id, waits, tuple(behind), OnFailure(policy), parent
            )
            for run_id, flow, urgency, task_id, waits, behind, policy, parent in rows
        ]

    async def items(
        self, tenant_id: TenantId, run_id: str, *, after: int = -1, limit: int = 1000
    ) -> list[ItemRecord]:
        """Return up to `limit` of a run's items with positions above `after`, in order."""
        query = (
            select(internal_items)
            .where(
                internal_items.c.run_id == run_id,
                internal_items.c.tenant_id == tenant_id,
                internal_items.c.position > after,
            )
            .order_by(internal_items.c.position)
            .limit(limit)
        )
        rows = await self._database.read_all(query)
        return [record_of(ItemRecord, row, output=row.result) for row in rows]

    async def cancel(self, tenant_id: TenantId, run_id: str) -> RunRecord:
        """Cancel a run unless it has ended.

        Fence off its workers, and release or block its successors.
        """
        async with self._database.hot_transaction() as transaction:
            await end_run(transaction, run_id, RunEnd(RunStatus.CANCELLED), tenant_id=tenant_id)
        return await self.get(tenant_id, run_id)

    async def redo(self, tenant_id: TenantId, run_id: str) -> Started:
        """Add a manual rerun to the run's chain.

        Raises NotFound, or Refused while the chain is unfinished or another run of the flow is active on the
        same session.
        """
        record = await self.get(tenant_id, run_id)
        try:
            async with self._database.hot_transaction() as transaction:
                hint = await _redo(transaction, record)
        except psycopg.errors.UniqueViolation as error:
            raise Refused(
                "Another run of this flow is active on the same session; wait for it to end."
            ) from error
        return Started({record.flow: hint.run_id}, (hint,))

    async def _read(
        self, tenant_id: TenantId, *where: ColumnElement[bool], newest_first: int | None = None
    ) -> list[RunRecord]:
        """Return runs in creation order, or up to `newest_first` runs, newest first."""
        runs = internal_runs.c
        query = select(internal_runs).where(runs.tenant_id == tenant_id, *where).limit(newest_first)
        order = (runs.number,) if newest_first is None else (desc(runs.created_at), desc(runs.number))
        async with self._database.transaction() as connection:
            rows = (await connection.execute(query.order_by(*order))).all()
            counts = await connection.execute(_counts([row.run_id for row in rows]))
            progress = {row[0]: Progress(*row[1:]) for row in counts}
        return [record_of(RunRecord, row, progress=progress.get(row.run_id, Progress())) for row in rows]


async def _redo(transaction: HotConnection, record: RunRecord) -> Hint:
    """Add a run to an ended chain. Runs that were blocked by the chain's failure wait for the new run.

    The new run inherits the last run's successors, so that each successor depends on only one run in a
    chain.
    """
    rows = await transaction.fetch_all(statement("lock_graph"), {"graph_id": record.graph_id})
    chain = [
        (run_id, RunStatus(status), count)
        for run_id, status, _, _, chain_id, count in rows
        if chain_id == record.chain_id
    ]
    if any(status not in ENDED for _, status, _ in chain):
        raise Refused("The run has not ended yet; cancel it, or wait.")
    last = chain[-1][0]
    nodes = {
        run_id: Node(run_id, RunStatus(status), tuple(successors), OnFailure(on_failure))
        for run_id, status, successors, on_failure, *_ in rows
    }
    nodes[last] = replace(nodes[last], status=RunStatus.READY)
    for run_id, open_predecessors in unblock(nodes, last).items():
        unblocked = {"run_id": run_id, "open_predecessors": open_predecessors}
        await transaction.fetch_all(statement("unblock_run"), unblocked)
    return await add_rerun(
        transaction,
        last,
        by_hand=True,
        redo_count=count_manual([count for _, status, count in chain if status in SUCCEEDED]),
        flight_key=None if record.session_id is None else f"{record.session_id}:{record.flow}",
    )


def _counts(run_ids: list[str]) -> Select[Any, int, Any, Any, Any]:
    def those(status: ItemStatus) -> Any:
        return func.count().filter(internal_items.c.status == status.value)

    return (
        select(
            internal_items.c.run_id,
            func.count(),
            those(ItemStatus.DONE),
            those(ItemStatus.SKIPPED),
            those(ItemStatus.FAILED),
        )
        .where(internal_items.c.run_id.in_(run_ids))
        .group_by(internal_items.c.run_id)
    )
