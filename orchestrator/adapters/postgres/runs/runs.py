"""Runs of Internal flows as senders and operators see them, on PostgreSQL: start, read, cancel, redo."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any

import psycopg
from sqlalchemy import ColumnElement, Select, desc, func, select

from orchestrator.adapters.postgres.pool import Database, HotTransaction, dump_json
from orchestrator.adapters.postgres.rows import record_of
from orchestrator.adapters.postgres.runs.ending import GRACE_S, add_rerun, end_run, to_hints
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import internal_items, internal_runs
from orchestrator.errors import NotFound, Refused, Unavailable
from orchestrator.ports.runs.records import Hint, ItemRecord, NewRun, Progress, RunRecord, Started
from orchestrator.ports.runs.status import (
    ENDED,
    SUCCEEDED,
    ItemStatus,
    Node,
    OnFailure,
    Phase,
    RunStatus,
    count_by_hand,
    find_waves,
    unblock,
)
from orchestrator.ports.runs.work import RunEnd
from orchestrator.types import DEFAULT_TENANT, SessionId, TenantId, new_id

ATTEMPTS = 3  # to start a run while others start and end the same
LOOK_EVERY_S = 0.02
LOOK_AT_MOST_EVERY_S = 0.2


class PostgresRuns:
    """Every method raises Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        """Store the nodes of one graph. The same `key` is the same graph.

        A node whose flow is at work already is joined, and those that depend on it wait for that run (IF-11).
        """
        graph_id, ids = _identify(runs, key)
        present: dict[str, str] = {}
        for _ in range(ATTEMPTS):
            missing = tuple(run for run in runs if run.flow not in present)
            if not missing:
                return Started(present, joined=True)
            try:
                async with self._database.hot_transaction() as transaction:
                    hints = await _store_graph(transaction, missing, graph_id, ids, present)
            except psycopg.errors.UniqueViolation:
                present = await self._there_already(runs, ids)
                continue
            started = {run.flow: ids[run.flow] for run in missing}
            return Started(started | present, hints, waves=() if present else _waves(runs, ids))
        raise Unavailable(
            "The same runs are started and ended again and again at this moment; try again later."
        )

    async def fire(self, job: str, due_at: datetime, next_due_at: datetime, runs: tuple[NewRun, ...]) -> bool:
        """Start the runs of a scheduled job, unless this firing was claimed already (IF-15).

        While the runs of an earlier firing are at work, this one is coalesced with them (IF-11).
        """
        graph_id, ids = _identify(runs, f"schedule:{job}:{due_at.timestamp()}")
        firing = {"tenant_id": DEFAULT_TENANT, "job": job, "due_at": due_at, "next_due_at": next_due_at}
        try:
            async with self._database.hot_transaction() as transaction:
                if await transaction.fetch_one("claim_firing", firing) is None:
                    return False
                await _store_graph(transaction, runs, graph_id, ids)
        except psycopg.errors.UniqueViolation:
            await self._database.fetch_one(statement("claim_firing"), firing)
            return False
        return True

    async def now(self) -> float:
        """The database's clock, unix seconds. Raises Unavailable."""
        row = await self._database.fetch_one("SELECT extract(epoch FROM clock_timestamp())::float8", {})
        assert row is not None
        return row[0]

    async def get(self, tenant_id: TenantId, run_id: str) -> RunRecord:
        """Raises NotFound."""
        found = await self._read(tenant_id, internal_runs.c.run_id == run_id)
        if not found:
            raise NotFound("run", run_id)
        return found[0]

    async def wait(self, tenant_id: TenantId, run_id: str, timeout_s: float) -> RunRecord | None:
        """The record of a run once it has ended; None when it has not within so many seconds."""
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
        """Newest first."""
        wanted = {"session_id": session_id, "flow": flow, "status": status}
        return await self._read(
            tenant_id,
            *(internal_runs.c[name] == str(value) for name, value in wanted.items() if value is not None),
            newest_first=limit,
        )

    async def chain(self, tenant_id: TenantId, chain_id: str) -> list[RunRecord]:
        """A run and its reruns, in order."""
        return await self._read(tenant_id, internal_runs.c.chain_id == chain_id)

    async def graph(self, tenant_id: TenantId, graph_id: str) -> list[RunRecord]:
        """Every run of a graph, reruns included, in the order in which they were added."""
        return await self._read(tenant_id, internal_runs.c.graph_id == graph_id)

    async def items(
        self, tenant_id: TenantId, run_id: str, *, after: int = -1, limit: int = 1000
    ) -> list[ItemRecord]:
        """Items by position, from the one after `after`."""
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
        async with self._database.transaction() as connection:
            return [record_of(ItemRecord, row, output=row.result) for row in await connection.execute(query)]

    async def cancel(self, tenant_id: TenantId, run_id: str) -> RunRecord:
        """End a run that has not ended; its holders are fenced, its successors released or blocked."""
        async with self._database.hot_transaction() as transaction:
            await end_run(transaction, run_id, RunEnd(RunStatus.CANCELLED), tenant_id=tenant_id)
        return await self.get(tenant_id, run_id)

    async def redo(self, tenant_id: TenantId, run_id: str) -> Started:
        """Run a chain once more by hand. Raises NotFound, and Refused while it is at work."""
        record = await self.get(tenant_id, run_id)
        try:
            async with self._database.hot_transaction() as transaction:
                hint = await _redo(transaction, record)
        except psycopg.errors.UniqueViolation as error:
            raise Refused("Another run of this flow is at work on the same session; wait for it.") from error
        return Started({record.flow: hint.run_id}, (hint,))

    async def _there_already(self, runs: tuple[NewRun, ...], ids: dict[str, str]) -> dict[str, str]:
        """The runs of the same message, or those that hold the flight keys."""
        keys = [run.flight_key for run in runs if run.flight_key is not None]
        query = select(internal_runs.c.flow, internal_runs.c.run_id).where(
            internal_runs.c.run_id.in_(ids.values())
            | (internal_runs.c.flight_key.in_(keys) & (internal_runs.c.tenant_id == runs[0].tenant_id))
        )
        async with self._database.transaction() as connection:
            return {row.flow: row.run_id for row in await connection.execute(query)}

    async def _read(
        self, tenant_id: TenantId, *where: ColumnElement[bool], newest_first: int | None = None
    ) -> list[RunRecord]:
        """Records in the order in which they were added, or so many of the newest."""
        runs = internal_runs.c
        query = select(internal_runs).where(runs.tenant_id == tenant_id, *where).limit(newest_first)
        order = (runs.number,) if newest_first is None else (desc(runs.created_at), desc(runs.number))
        async with self._database.transaction() as connection:
            rows = (await connection.execute(query.order_by(*order))).all()
            counts = await connection.execute(_counts([row.run_id for row in rows]))
            progress = {row[0]: Progress(*row[1:]) for row in counts}
        return [record_of(RunRecord, row, progress=progress.get(row.run_id, Progress())) for row in rows]


def _identify(runs: tuple[NewRun, ...], key: str | None) -> tuple[str, dict[str, str]]:
    """Identifiers of the graph and of its runs by flow; the same key gives the same."""
    graph_id = new_id("graph") if key is None else f"graph_{_digest(key)}"
    return graph_id, {run.flow: f"run_{_digest(graph_id + '/' + run.flow)}" for run in runs}


async def _store_graph(
    transaction: HotTransaction,
    runs: tuple[NewRun, ...],
    graph_id: str,
    ids: dict[str, str],
    present: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Hint, ...]:
    """Insert every node; a unique violation when they are there, or a flight key is held.

    `present`: runs by flow that are at work already, and that nodes depend on instead of one of their own.
    """
    nodes: list[dict[str, Any]] = []
    for run in runs:
        columns = {column.name: getattr(run, column.name) for column in fields(run)}
        successors = [ids[other.flow] for other in runs if run.flow in other.depends_on]
        joined = [present[name] for name in run.depends_on if name in present]
        earlier = {*joined, *(() if run.after is None else (run.after,))}
        followed = [await _follow(transaction, run, one, ids[run.flow]) for one in sorted(earlier)]
        open_predecessors = len(set(run.depends_on) - present.keys()) + sum(followed)
        nodes.append(
            columns
            | {"run_id": ids[run.flow], "open_predecessors": open_predecessors, "successors": successors}
        )
    arguments = {"graph_id": graph_id, "nodes": dump_json(nodes), "grace_s": GRACE_S}
    return to_hints(await transaction.fetch_all("start_graph", arguments))


def _waves(runs: tuple[NewRun, ...], ids: dict[str, str]) -> tuple[tuple[Hint, ...], ...]:
    by_name = {run.flow: run for run in runs}
    return tuple(
        tuple(Hint(ids[name], name, Phase.BEFORE, by_name[name].urgency) for name in wave)
        for wave in find_waves({run.flow: run.depends_on for run in runs})
    )


async def _follow(transaction: HotTransaction, run: NewRun, earlier: str, run_id: str) -> bool:
    """Enter a new run with one that it waits for; False when that has ended."""
    arguments = {"run_id": earlier, "tenant_id": run.tenant_id, "successor": run_id}
    return await transaction.fetch_one("follow_run", arguments) is not None


async def _redo(transaction: HotTransaction, record: RunRecord) -> Hint:
    """Add a run to an ended chain, and let what the chain's failure left unrun wait for it.

    The chain's last run hands its successors over, so that each is released, and held back, by one run of a chain.
    """
    rows = await transaction.fetch_all("lock_graph", {"graph_id": record.graph_id})
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
        await transaction.execute("unblock_run", unblocked)
    return await add_rerun(
        transaction,
        last,
        redo_count=count_by_hand([count for _, status, count in chain if status in SUCCEEDED]),
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


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
