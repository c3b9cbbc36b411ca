"""RT-19: the database reads of a turn don't grow with waiting turns or idle sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from benchmarks.growth import copy_session
from orchestrator.adapters.postgres.hot_connections import HotConnection, Query
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import Statement, statement
from orchestrator.adapters.postgres.turns.outbox import PostgresOutbox
from orchestrator.turns.lease import OutboxEntry
from orchestrator.types import SessionId
from tests.contract.factories import commit_for
from tests.integration.workers.lanes import Stage

HOT = ("submit", "claim", "commit_turn", "take_turn", "sweep_lanes", "reap_dead", "take_outbox")
BEGINNING = 60
"""Number of characters that distinguish these statements, whose number of reads depends on their arguments."""
FEW, MANY = 100, 3_000
AT_ONCE = 100
"""Batch size of a sweep and of the outbox, whose reads per entry don't count here."""
SLACK = 1_000
"""Tolerance in rows or pages, for remains of earlier steps and for index levels. Far below `MANY`."""

READ_SO_FAR = """
    SELECT sum(pg_stat_get_xact_tuples_returned(oid))::int, sum(pg_stat_get_xact_blocks_fetched(oid))::int
    FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"""
"""Rows and index entries read by this transaction, and their pages."""


class Touched:
    """A replacement of `HotConnection.fetch_all` that records the maximum reads of each hot statement."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.most: dict[str, dict[str, int]] = {}
        names = {statement(name).text[:BEGINNING]: name for name in HOT}
        assert len(names) == len(HOT)
        run, note = HotConnection.fetch_all, self._note

        async def fetch_all(
            self: HotConnection, query: Query, arguments: Mapping[str, Any]
        ) -> list[TupleRow]:
            name = names.get(query.text[:BEGINNING]) if isinstance(query, Statement) else None
            if name is None:
                return await run(self, query, arguments)
            alone = self.connection.info.transaction_status == TransactionStatus.IDLE
            if alone:
                await run(self, "BEGIN", {})
            [before] = await run(self, READ_SO_FAR, {})
            rows = await run(self, query, arguments)
            [after] = await run(self, READ_SO_FAR, {})
            if alone:
                await run(self, "COMMIT", {})
            note(name, rows=after[0] - before[0], pages=after[1] - before[1])
            return rows

        patch.setattr(HotConnection, "fetch_all", fetch_all)

    def _note(self, name: str, **read: int) -> None:
        known = self.most.setdefault(name, dict.fromkeys(read, 0))
        self.most[name] = {what: max(known[what], number) for what, number in read.items()}


@pytest.fixture(params=[False, True], ids=["", "behind a pooler"])
def pooled(request: pytest.FixtureRequest) -> bool:
    """Select whether each execution is planned separately, or one plan is used for all arguments."""
    return request.param


@pytest.fixture
async def stage(request: pytest.FixtureRequest, pooled: bool) -> AsyncIterator[Stage]:
    """Yield a separate database without statistics."""
    database_url = request.getfixturevalue("empty_database_url" if pooled else "database_url")
    migrate(database_url)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(database_url, pooled=pooled))
        yield Stage(database_url, database, stack)


async def test_no_statement_of_a_turn_reads_more_where_there_is_more(
    stage: Stage, pooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With plans for few rows, with plans of new connections, and with plans that know the number of rows."""
    touched = Touched(monkeypatch)
    await _fill(stage, FEW)
    await _exercise(stage)
    few, touched.most = touched.most, {}

    await _fill(stage, MANY)
    await _exercise(stage)
    await _exercise_anew(stage, pooled=pooled)
    await stage.run("ANALYZE")
    await _exercise_anew(stage, pooled=pooled)

    assert set(few) == set(touched.most) == set(HOT)
    grown = {
        (name, what): (few[name][what], number)
        for name, read in touched.most.items()
        for what, number in read.items()
        if number > few[name][what] + SLACK
    }
    assert not grown


async def _exercise_anew(stage: Stage, *, pooled: bool) -> None:
    """Run on separate connections, with workers that stay alive, because dead workers cause a search."""
    async with Database(stage.url, pooled=pooled) as database:
        await _exercise(Stage(stage.url, database, stage._stack))


async def _fill(stage: Stage, sessions: int) -> None:
    """Create idle sessions with past messages, and as many sessions with waiting turns."""
    resting, waiting = await stage.session("one", "two"), await stage.session("one", "two")
    await _run(stage, resting)
    await (await stage.lane()).sweep(grace_s=0.0)  # which no longer looks at idle sessions
    for session in (resting, waiting):
        copy_session(stage.url, session, sessions)


async def _exercise(stage: Stage) -> None:
    """Execute each hot statement at least once."""
    session = await stage.session("one", "two", "three")
    await _run(stage, session)
    session = await stage.session("one")
    limits = {"max_attempts": 3, "deadline_s": 60.0, "crashes_below": 2}
    async with stage.database.hot_transaction() as transaction:
        assert await transaction.fetch_all(statement("take_turn"), {"session_id": session, **limits})
    assert len(await (await stage.lane()).sweep(grace_s=0.0, limit=AT_ONCE)) == AT_ONCE
    outbox = PostgresOutbox(stage.database)
    taken = await outbox.take_due(("notes",), again_after_s=60.0, limit=AT_ONCE)
    assert taken
    await outbox.acknowledge([message.id for message in taken])


async def _run(stage: Stage, session: SessionId) -> None:
    """Run all turns of a session, each with a message."""
    lane = await stage.lane()
    lease = await lane.claim(session)
    while lease is not None:
        commit = commit_for(lease, outbox=(OutboxEntry("notes", {}),))
        done = await lane.commit(lease, commit)
        after = {"epoch": done.epoch, "state": commit.state, "patches": ()}
        lease = replace(lease, work=done.next, **after) if done.next else None
