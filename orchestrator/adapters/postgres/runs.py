"""The work on runs of Internal flows, on PostgreSQL: claims, items, endings, the reconciler's sweep.

Readiness and truth are here; messages are hints (IF-8, IF-9). Looking at runs is in `run_reads`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import orjson
from psycopg.rows import TupleRow

from orchestrator.adapters.postgres.pool import Connection, Database, translated
from orchestrator.adapters.postgres.statements import statement
from orchestrator.ports.run_status import SUCCEEDED, OnFailure, Phase, RedoStanding, RunStatus, Urgency
from orchestrator.ports.run_work import ClaimedItem, ItemEnd, ItemsClaim, Recorded, RunClaim, RunEnd, RunFacts
from orchestrator.ports.runs import Hint, NewRun, Progress
from orchestrator.types import Json, JsonObject, SessionId, TenantId, TurnId, WorkerId, new_id

GRACE_S = 1.0
"""How long a message may take before the reconciler sends another."""
AGAIN_S = 5.0
"""How long the reconciler's own message may take: a queue may be long."""
AT_MOST = 50
"""Items of one claim."""


class Owner(Protocol):
    """The worker in whose name claims are made."""

    @property
    def worker_id(self) -> WorkerId: ...


class PostgresRunWork:
    """Implements `ports.run_work.RunWork`."""

    def __init__(self, database: Database, owner: Owner, *, lease_ttl_s: float = 15.0) -> None:
        self._database = database
        self._owner = owner
        self._ttl_s = lease_ttl_s
        self._held: set[int] = set()

    async def claim(self, run_id: str, config: JsonObject, *, waited_s: float = 0.0) -> RunClaim | None:
        arguments = {
            "run_id": run_id,
            "config": dump(config),
            "owner": self._owner.worker_id,
            "ttl_s": self._ttl_s,
            "waited_s": waited_s,
        }
        with translated():
            row = await self._database.fetch_one(statement("claim_run"), arguments)
        if row is None:
            return None
        token, phase, attempts, inputs, progress = row[10:]
        if attempts == 1 and phase == Phase.BEFORE:
            with translated():
                await self._database.fetch_all(statement("note_run"), {"run_id": run_id})
        self._held.add(token)
        return RunClaim(
            _facts(run_id, row), token, Phase(phase), attempts, tuple(inputs or ()), Progress(*progress)
        )

    async def begin_items(
        self, claim: RunClaim, inputs: tuple[Json, ...], options: JsonObject, data: Json
    ) -> bool:
        self._held.discard(claim.token)
        arguments = {
            "run_id": claim.facts.run_id,
            "token": claim.token,
            "inputs": dump(inputs),
            "options": dump(options),
            "data": dump(data),
            "grace_s": GRACE_S,
        }
        with translated():
            return await self._database.fetch_one(statement("begin_items"), arguments) is not None

    async def claim_items(self, run_id: str, *, waited_s: float = 0.0) -> ItemsClaim | None:
        async with self._transaction() as connection:
            run = await one(connection, "lock_items_run", {"run_id": run_id, "waited_s": waited_s})
            if run is None:
                return None
            facts = _facts(run_id, run)
            slowly = waited_s > 0 and facts.urgency is Urgency.HOUSEKEEPING
            arguments = {
                "run_id": run_id,
                "owner": self._owner.worker_id,
                "ttl_s": self._ttl_s,
                "concurrency": 1 if slowly else facts.options["concurrency"],
                "at_most": 1 if slowly else AT_MOST,
            }
            rows = await rows_of(connection, "claim_items", arguments)
            if not rows:
                await one(connection, "close_items", {"run_id": run_id, "grace_s": GRACE_S})
                return None
        token = rows[0][0]
        self._held.add(token)
        return ItemsClaim(facts, token, tuple(ClaimedItem(*row[1:]) for row in rows))

    async def record_items(self, claim: ItemsClaim, ends: tuple[ItemEnd, ...], *, last: bool) -> Recorded:
        run_id = claim.facts.run_id
        if last:
            self._held.discard(claim.token)
        async with self._transaction() as connection:
            if last:
                await one(connection, "lock_items_run", {"run_id": run_id, "waited_s": 0.0})
            if await _lock_claim(connection, claim.token) is None:
                return Recorded.LOST
            arguments = {"run_id": run_id, "token": claim.token, "ends": dump(ends)}
            await execute(connection, "record_items", arguments)
            if not last:
                return Recorded.MORE
            await connection.execute("DELETE FROM internal_claims WHERE token = $1", [claim.token])
            closed = await one(connection, "close_items", {"run_id": run_id, "grace_s": GRACE_S})
        return Recorded.MORE if closed is None else Recorded.ALL

    async def finish(self, claim: RunClaim, end: RunEnd) -> tuple[Hint, ...] | None:
        self._held.discard(claim.token)
        arguments = {
            "run_id": claim.facts.run_id,
            "token": claim.token,
            "status": end.status.value,
            "closing": dump(end.closing),
            "reason": end.reason,
            "error": end.error,
            "redo": end.redo.value,
        }
        async with self._transaction() as connection:
            row = await one(connection, "finish_run", arguments)
            if row is None:
                return None
            hints = await follow_up(connection, row, end)
            await execute(connection, "note_run", {"run_id": claim.facts.run_id})
            return hints

    async def note_progress(self, run_id: str) -> tuple[int, JsonObject] | None:
        with translated():
            row = await self._database.fetch_one(statement("note_run"), {"run_id": run_id})
        return None if row is None else (row[0], row[1])

    async def outputs(self, run_id: str) -> list[Json]:
        query = "SELECT result FROM internal_items WHERE run_id = %(run_id)s ORDER BY position"
        with translated():
            return [row[0] for row in await self._database.fetch_all(query, {"run_id": run_id})]

    async def renew(self) -> set[int]:
        held = sorted(self._held)
        if not held:
            return set()
        with translated():
            rows = await self._database.fetch_all(
                statement("renew_claims"), {"tokens": held, "ttl_s": self._ttl_s}
            )
        lost = set(held) - {row[0] for row in rows}
        self._held -= lost
        return lost

    def give_up(self, token: int) -> None:
        """Stop prolonging a claim: it runs out, and another worker takes over."""
        self._held.discard(token)

    async def sweep(self, *, limit: int = 500, waited_s: float = 0.0) -> tuple[Hint, ...]:
        with translated():
            await self._database.fetch_all(statement("free_claims"), {})
            rows = await self._database.fetch_all(
                statement("sweep_runs"), {"again_s": AGAIN_S, "limit": limit, "waited_s": waited_s}
            )
        return tuple(Hint(row[0], row[1], Phase(row[2]), Urgency(row[3])) for row in rows)

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[Connection]:
        async with transaction(self._database) as connection:
            yield connection


@asynccontextmanager
async def transaction(database: Database) -> AsyncGenerator[Connection]:
    """A transaction of several named statements on one connection of the hot path."""
    with translated():
        async with database.connection() as connection, connection.transaction():
            yield connection


async def execute(connection: Connection, name: str, arguments: Mapping[str, Any]) -> None:
    """Run a named statement that returns nothing."""
    named = statement(name)
    await connection.execute(named.text, named.ordered(arguments))


async def one(connection: Connection, name: str, arguments: Mapping[str, Any]) -> TupleRow | None:
    """The first row of a named statement."""
    named = statement(name)
    return await (await connection.execute(named.text, named.ordered(arguments))).fetchone()


async def rows_of(connection: Connection, name: str, arguments: Mapping[str, Any]) -> list[TupleRow]:
    """All rows of a named statement."""
    named = statement(name)
    return await (await connection.execute(named.text, named.ordered(arguments))).fetchall()


def dump(value: Any) -> str:
    """JSON as a statement takes it."""
    return orjson.dumps(value).decode()


async def store(
    connection: Connection,
    run: NewRun,
    *,
    run_id: str,
    chain_id: str,
    graph_id: str,
    number: int,
    open_predecessors: int = 0,
    successors: list[str] | None = None,
    redo_count: int | None = None,
    after_s: float = 0.0,
) -> Hint | None:
    """Insert a run; a hint when it may begin."""
    ready = open_predecessors == 0
    arguments = {
        "run_id": run_id,
        "tenant_id": run.tenant_id,
        "session_id": run.session_id,
        "flow": run.flow,
        "status": (RunStatus.READY if ready else RunStatus.WAITING).value,
        "inputs": dump(run.inputs),
        "parameters": dump(run.parameters),
        "options": dump(run.options),
        "chain_id": chain_id,
        "graph_id": graph_id,
        "number": number,
        "redo_count": redo_count,
        "flight_key": run.flight_key,
        "open_predecessors": open_predecessors,
        "successors": successors or [],
        "on_failure": run.on_failure.value,
        "urgency": run.urgency.value,
        "turn_id": run.turn_id,
        "after_s": after_s,
        "grace_s": GRACE_S,
    }
    await execute(connection, "start_run", arguments)
    return Hint(run_id, run.flow, Phase.BEFORE, run.urgency, after_s) if ready else None


async def follow_up(connection: Connection, row: TupleRow, end: RunEnd) -> tuple[Hint, ...]:
    """What the end of a run leads to: its rerun, or its successors. `row` is that of `finish_run`."""
    run_id, tenant_id, session_id, flow, inputs, parameters, options, chain_id, graph_id = row[:9]
    flight_key, successors, on_failure, urgency = row[9:13]
    if end.redo is RedoStanding.SCHEDULED:
        again = NewRun(
            flow=flow,
            inputs=tuple(inputs),
            options=options,
            parameters=parameters,
            tenant_id=TenantId(tenant_id),
            session_id=None if session_id is None else SessionId(session_id),
            flight_key=flight_key,
            on_failure=OnFailure(on_failure),
            urgency=Urgency(urgency),
        )
        hint = await store(
            connection,
            again,
            run_id=new_id("run"),
            chain_id=chain_id,
            graph_id=graph_id,
            number=await next_number(connection, graph_id),
            successors=successors,
            redo_count=end.redo_count,
            after_s=end.redo_after_s,
        )
        await connection.execute("UPDATE internal_runs SET successors = '{}' WHERE run_id = $1", [run_id])
        return () if hint is None else (hint,)
    if end.status not in SUCCEEDED and on_failure == OnFailure.BLOCK:
        await block(connection, graph_id, successors, flow, end.status)
        return ()
    return await _release(connection, successors)


async def next_number(connection: Connection, graph_id: str) -> int:
    """The place of a further run in its graph."""
    query = "SELECT coalesce(max(number), -1) + 1 FROM internal_runs WHERE graph_id = $1"
    row = await (await connection.execute(query, [graph_id])).fetchone()
    assert row is not None
    return row[0]


async def block(
    connection: Connection, graph_id: str, successors: list[str], flow: str, status: RunStatus
) -> None:
    """Leave everything unrun that depends on a failed run, directly or through others."""
    if not successors:
        return
    query = (
        "SELECT run_id, flow, successors FROM internal_runs"
        " WHERE graph_id = $1 AND status = 'waiting' ORDER BY run_id FOR NO KEY UPDATE"
    )
    waiting = {row[0]: row for row in await (await connection.execute(query, [graph_id])).fetchall()}
    causes = [(run_id, f"{flow} is {status}") for run_id in successors]
    while causes:
        run_id, reason = causes.pop(0)
        row = waiting.pop(run_id, None)
        if row is None:
            continue
        await connection.execute(
            "UPDATE internal_runs SET status = 'blocked', reason = $2, flight_key = NULL, hint_at = NULL,"
            " finished_at = clock_timestamp() WHERE run_id = $1",
            [run_id, reason],
        )
        await execute(connection, "note_run", {"run_id": run_id})
        causes += [(further, f"{row[1]} is {RunStatus.BLOCKED}") for further in row[2]]


async def _release(connection: Connection, successors: list[str]) -> tuple[Hint, ...]:
    if not successors:
        return ()
    locks = "SELECT run_id FROM internal_runs WHERE run_id = ANY($1) ORDER BY run_id FOR NO KEY UPDATE"
    await connection.execute(locks, [successors])
    rows = await rows_of(connection, "release_runs", {"run_ids": successors, "grace_s": GRACE_S})
    return tuple(Hint(row[0], row[1], Phase.BEFORE, Urgency(row[2])) for row in rows)


async def _lock_claim(connection: Connection, token: int) -> TupleRow | None:
    query = "SELECT token FROM internal_claims WHERE token = $1 FOR UPDATE"
    return await (await connection.execute(query, [token])).fetchone()


def _facts(run_id: str, row: TupleRow) -> RunFacts:
    """The first ten columns of a claim."""
    tenant_id, session_id, flow, redo_count, parameters, options, config, data, urgency, turn_id = row[:10]
    return RunFacts(
        run_id=run_id,
        tenant_id=TenantId(tenant_id),
        session_id=None if session_id is None else SessionId(session_id),
        flow=flow,
        redo_count=redo_count,
        parameters=parameters,
        options=options,
        config=config or {},
        data=data,
        urgency=Urgency(urgency),
        turn_id=None if turn_id is None else TurnId(turn_id),
    )
