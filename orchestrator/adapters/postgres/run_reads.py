"""Runs of Internal flows as senders and operators see them, on PostgreSQL: start, look, cancel, redo."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg
from psycopg.rows import TupleRow
from sqlalchemy import Row, Select, desc, func, select

from orchestrator.adapters.postgres.pool import Connection, Database, translated
from orchestrator.adapters.postgres.runs import block, execute, next_number, store, transaction
from orchestrator.adapters.postgres.tables import internal_items, internal_runs
from orchestrator.errors import NotFound, Refused
from orchestrator.ports.run_status import (
    ENDED,
    SUCCEEDED,
    ItemStatus,
    Node,
    OnFailure,
    Phase,
    RedoStanding,
    RunStatus,
    Urgency,
    count_by_hand,
    unblock,
)
from orchestrator.ports.runs import Hint, ItemRecord, NewRun, Progress, RunRecord, Started
from orchestrator.types import DEFAULT_TENANT, SessionId, TenantId, new_id

_UNFINISHED = [status.value for status in RunStatus if status not in ENDED]


class PostgresRuns:
    """Implements `ports.runs.Runs`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        graph_id, ids = _identify(runs, key)
        try:
            async with transaction(self._database) as connection:
                hints = await _store_graph(connection, runs, graph_id, ids)
        except psycopg.errors.UniqueViolation:
            return Started(await self._there_already(runs, ids), joined=True)
        return Started(ids, hints)

    async def fire(self, job: str, due_at: datetime, runs: tuple[NewRun, ...]) -> bool:
        """Start the runs of a scheduled job, unless this firing was claimed already (IF-15).

        While the runs of an earlier firing are at work, this one is coalesced with them (IF-11).
        """
        graph_id, ids = _identify(runs, f"schedule:{job}:{due_at.timestamp()}")
        try:
            async with transaction(self._database) as connection:
                if not await _claim_firing(connection, job, due_at):
                    return False
                await _store_graph(connection, runs, graph_id, ids)
        except psycopg.errors.UniqueViolation:
            async with transaction(self._database) as connection:
                await _claim_firing(connection, job, due_at)
            return False
        return True

    async def now(self) -> float:
        """The database's clock, unix seconds. Raises Unavailable."""
        with translated():
            row = await self._database.fetch_one("SELECT extract(epoch FROM clock_timestamp())::float8", {})
        assert row is not None
        return row[0]

    async def _there_already(self, runs: tuple[NewRun, ...], ids: dict[str, str]) -> dict[str, str]:
        """The runs of the same message, or those that hold the flight keys."""
        keys = [run.flight_key for run in runs if run.flight_key is not None]
        query = select(internal_runs.c.flow, internal_runs.c.run_id).where(
            internal_runs.c.run_id.in_(ids.values())
            | (internal_runs.c.flight_key.in_(keys) & (internal_runs.c.tenant_id == runs[0].tenant_id))
        )
        async with self._database.transaction() as connection:
            return {row.flow: row.run_id for row in await connection.execute(query)}

    async def get(self, tenant_id: TenantId, run_id: str) -> RunRecord:
        found = await self._read(
            select(internal_runs).where(
                internal_runs.c.run_id == run_id, internal_runs.c.tenant_id == tenant_id
            )
        )
        if not found:
            raise NotFound("run", run_id)
        return found[0]

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        flow: str | None = None,
        status: RunStatus | None = None,
        limit: int = 100,
    ) -> list[RunRecord]:
        query = (
            select(internal_runs)
            .where(internal_runs.c.tenant_id == tenant_id)
            .order_by(desc(internal_runs.c.created_at), desc(internal_runs.c.number))
            .limit(limit)
        )
        for column, wanted in (
            (internal_runs.c.session_id, session_id),
            (internal_runs.c.flow, flow),
            (internal_runs.c.status, status),
        ):
            if wanted is not None:
                query = query.where(column == str(wanted))
        return await self._read(query)

    async def chain(self, tenant_id: TenantId, chain_id: str) -> list[RunRecord]:
        return await self._read(
            select(internal_runs)
            .where(internal_runs.c.chain_id == chain_id, internal_runs.c.tenant_id == tenant_id)
            .order_by(internal_runs.c.number)
        )

    async def graph(self, tenant_id: TenantId, graph_id: str) -> list[RunRecord]:
        return await self._read(
            select(internal_runs)
            .where(internal_runs.c.graph_id == graph_id, internal_runs.c.tenant_id == tenant_id)
            .order_by(internal_runs.c.number)
        )

    async def items(
        self, tenant_id: TenantId, run_id: str, *, after: int = -1, limit: int = 1000
    ) -> list[ItemRecord]:
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
            return [_item(row) for row in await connection.execute(query)]

    async def cancel(self, tenant_id: TenantId, run_id: str) -> RunRecord:
        async with transaction(self._database) as connection:
            row = await _lock(connection, tenant_id, run_id)
            flow, status, graph_id, successors, on_failure = row[:5]
            if status in _UNFINISHED:
                await connection.execute("DELETE FROM internal_claims WHERE run_id = $1", [run_id])
                await connection.execute(
                    "UPDATE internal_runs SET status = 'cancelled', token = NULL, hint_at = NULL,"
                    " flight_key = NULL, finished_at = clock_timestamp() WHERE run_id = $1",
                    [run_id],
                )
                if on_failure == OnFailure.BLOCK:
                    await block(connection, graph_id, successors, flow, RunStatus.CANCELLED)
                await execute(connection, "note_run", {"run_id": run_id})
        return await self.get(tenant_id, run_id)

    async def redo(self, tenant_id: TenantId, run_id: str) -> Started:
        try:
            async with transaction(self._database) as connection:
                return await _redo(connection, tenant_id, run_id)
        except psycopg.errors.UniqueViolation as error:
            raise Refused("Another run of this flow is at work on the same session; wait for it.") from error

    async def _read(self, query: Select[Any]) -> list[RunRecord]:
        async with self._database.transaction() as connection:
            rows = (await connection.execute(query)).all()
            counts = await connection.execute(_counts([row.run_id for row in rows]))
            progress = {row[0]: Progress(*row[1:]) for row in counts}
        return [_record(row, progress.get(row.run_id, Progress())) for row in rows]


def _identify(runs: tuple[NewRun, ...], key: str | None) -> tuple[str, dict[str, str]]:
    """Identifiers of the graph and of its runs by flow; the same key gives the same."""
    graph_id = new_id("graph") if key is None else f"graph_{_digest(key)}"
    return graph_id, {run.flow: f"run_{_digest(graph_id + '/' + run.flow)}" for run in runs}


async def _store_graph(
    connection: Connection, runs: tuple[NewRun, ...], graph_id: str, ids: dict[str, str]
) -> tuple[Hint, ...]:
    """Insert every node; a unique violation when they are there, or a flight key is held."""
    hints: list[Hint] = []
    for number, run in enumerate(runs):
        waits = run.after is not None and await _follow(connection, run, ids[run.flow])
        hint = await store(
            connection,
            run,
            run_id=ids[run.flow],
            chain_id=ids[run.flow],
            graph_id=graph_id,
            number=number,
            open_predecessors=len(set(run.depends_on)) + waits,
            successors=[ids[other.flow] for other in runs if run.flow in other.depends_on],
        )
        hints += [] if hint is None else [hint]
    return tuple(hints)


async def _follow(connection: Connection, run: NewRun, run_id: str) -> bool:
    """Enter a new run as a successor of one that is there; False when that has ended already."""
    query = (
        "UPDATE internal_runs SET successors = array_append(successors, $3)"
        " WHERE run_id = $1 AND tenant_id = $2 AND status = ANY($4) RETURNING run_id"
    )
    cursor = await connection.execute(query, [run.after, run.tenant_id, run_id, _UNFINISHED])
    return await cursor.fetchone() is not None


async def _claim_firing(connection: Connection, job: str, due_at: datetime) -> bool:
    query = (
        "INSERT INTO schedule_firings (tenant_id, job, due_at) VALUES ($1, $2, $3)"
        " ON CONFLICT DO NOTHING RETURNING job"
    )
    cursor = await connection.execute(query, [DEFAULT_TENANT, job, due_at])
    return await cursor.fetchone() is not None


async def _redo(connection: Connection, tenant_id: TenantId, run_id: str) -> Started:
    row = await _lock(connection, tenant_id, run_id)
    flow, _, graph_id, _, on_failure, session_id, inputs, parameters, options, urgency, chain_id = row
    query = (
        "SELECT status, redo_count FROM internal_runs WHERE chain_id = $1 ORDER BY number FOR NO KEY UPDATE"
    )
    chain = await (await connection.execute(query, [chain_id])).fetchall()
    if any(status in _UNFINISHED for status, _ in chain):
        raise Refused("The run has not ended yet; cancel it, or wait.")
    count = count_by_hand([count for status, count in chain if RunStatus(status) in SUCCEEDED])
    again = NewRun(
        flow=flow,
        inputs=tuple(inputs),
        options=options,
        parameters=parameters,
        tenant_id=tenant_id,
        session_id=None if session_id is None else SessionId(session_id),
        flight_key=None if session_id is None else f"{session_id}:{flow}",
        on_failure=OnFailure(on_failure),
        urgency=Urgency(urgency),
    )
    new_run_id = new_id("run")
    hint = await store(
        connection,
        again,
        run_id=new_run_id,
        chain_id=chain_id,
        graph_id=graph_id,
        number=await next_number(connection, graph_id),
        successors=await _unblock(connection, graph_id, chain_id),
        redo_count=count,
    )
    return Started({flow: new_run_id}, () if hint is None else (hint,))


async def _unblock(connection: Connection, graph_id: str, chain_id: str) -> list[str]:
    """Let what a chain's failure left unrun wait again; gives the successors of the chain's next run.

    The last run hands them over, so that each is released, and held back, by one run of a chain.
    """
    query = (
        "SELECT run_id, status, successors, on_failure, chain_id, number FROM internal_runs"
        " WHERE graph_id = $1 ORDER BY run_id FOR NO KEY UPDATE"
    )
    rows = await (await connection.execute(query, [graph_id])).fetchall()
    nodes = {
        run_id: Node(run_id, RunStatus(status), tuple(successors), OnFailure(on_failure))
        for run_id, status, successors, on_failure, *_ in rows
    }
    last = max((row for row in rows if row[4] == chain_id), key=lambda row: row[5])[0]
    nodes[last] = replace(nodes[last], status=RunStatus.READY)
    for run_id, open_predecessors in unblock(nodes, last).items():
        await connection.execute(
            "UPDATE internal_runs SET status = 'waiting', reason = NULL, finished_at = NULL,"
            " open_predecessors = $2, flight_key = session_id || ':' || flow WHERE run_id = $1",
            [run_id, open_predecessors],
        )
    await connection.execute("UPDATE internal_runs SET successors = '{}' WHERE run_id = $1", [last])
    return list(nodes[last].successors)


async def _lock(connection: Connection, tenant_id: TenantId, run_id: str) -> TupleRow:
    query = (
        "SELECT flow, status, graph_id, successors, on_failure, session_id, inputs, parameters, options,"
        " urgency, chain_id FROM internal_runs WHERE run_id = $1 AND tenant_id = $2 FOR NO KEY UPDATE"
    )
    row = await (await connection.execute(query, [run_id, tenant_id])).fetchone()
    if row is None:
        raise NotFound("run", run_id)
    return row


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


def _record(row: Row[Any], progress: Progress) -> RunRecord:
    return RunRecord(
        run_id=row.run_id,
        tenant_id=TenantId(row.tenant_id),
        flow=row.flow,
        status=RunStatus(row.status),
        phase=Phase(row.phase),
        chain_id=row.chain_id,
        graph_id=row.graph_id,
        session_id=None if row.session_id is None else SessionId(row.session_id),
        redo_count=row.redo_count,
        redo=RedoStanding(row.redo),
        progress=progress,
        closing=row.closing,
        reason=row.reason,
        error=row.error,
        attempts=row.attempts,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        successors=tuple(row.successors),
    )


def _item(row: Row[Any]) -> ItemRecord:
    return ItemRecord(
        position=row.position,
        status=ItemStatus(row.status),
        input=row.input,
        output=row.result,
        reason=row.reason,
        error=row.error,
        attempts=row.attempts,
    )


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
