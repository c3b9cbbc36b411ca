"""The end of a run, while others enter what waits for it (IF-9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.adapters.postgres.claims import WorkerLock
from orchestrator.adapters.postgres.hot_connections import HotConnection
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.runs.starting import identify, store_graph
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import RunStatus
from orchestrator.ports.runs.work import RunEnd
from orchestrator.types import DEFAULT_TENANT

DONE = RunEnd(RunStatus.DONE)
WAITS = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%internal_runs%'"


async def test_a_run_that_is_entered_while_the_one_before_it_ends_begins(database_url: str) -> None:
    """What an end sees of its successors is older than the lock that it waits for."""
    migrate(database_url)
    async with Database(database_url) as database, WorkerLock(database_url) as worker:
        runs, work = PostgresRuns(database), PostgresRunWork(database, worker)
        first = (await runs.start((NewRun("first"),))).runs["first"]
        claim = await work.claim(first, {})
        assert claim is not None
        second = (NewRun("second", after=first),)
        graph_id, ids = identify(second, None)
        async with database.hot_transaction() as entering:
            await store_graph(entering, second, graph_id, ids)
            ending = asyncio.create_task(work.finish(claim, DONE))
            async with asyncio.timeout(20):
                while not await database.fetch_all(WAITS, {}):
                    await asyncio.sleep(0.01)
        hints = await ending

        assert hints is not None
        assert [hint.run_id for hint in hints] == [ids["second"]]
        assert (await runs.get(DEFAULT_TENANT, ids["second"])).status is RunStatus.READY


async def test_the_last_of_two_that_end_at_once_releases_what_waits_for_both(database_url: str) -> None:
    """IF-9: a counter that both count down."""
    migrate(database_url)
    async with Database(database_url) as database, WorkerLock(database_url) as worker:
        runs, work = PostgresRuns(database), PostgresRunWork(database, worker)
        both = {"left", "right"}
        for _ in range(20):
            nodes = (*map(NewRun, sorted(both)), NewRun("joined", depends_on=tuple(sorted(both))))
            started = (await runs.start(nodes)).runs
            claims = [await work.claim(started[name], {}) for name in both]
            ends = await asyncio.gather(*(work.finish(claim, DONE) for claim in claims if claim))

            assert sorted(len(hints or ()) for hints in ends) == [0, 1]
            assert (await runs.get(DEFAULT_TENANT, started["joined"])).status is RunStatus.READY


async def test_a_claim_that_was_taken_away_ends_nothing(database_url: str) -> None:
    """IF-9: neither in one statement nor in several."""
    migrate(database_url)
    async with Database(database_url) as database, WorkerLock(database_url) as worker:
        runs, work = PostgresRuns(database), PostgresRunWork(database, worker)
        run_id = (await runs.start((NewRun("fenced"),))).runs["fenced"]
        claim = await work.claim(run_id, {})
        assert claim is not None
        await runs.cancel(DEFAULT_TENANT, run_id)

        assert await work.finish(claim, DONE) is None
        assert (await runs.get(DEFAULT_TENANT, run_id)).status is RunStatus.CANCELLED


async def test_a_link_of_a_chain_takes_two_statements(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it costs beside its own work: a claim, and an end that releases the next one."""
    migrate(database_url)
    sent: list[Any] = []
    fetch_all = HotConnection.fetch_all

    async def counted(self: HotConnection, query: Any, arguments: Any) -> Any:
        sent.append(query)
        return await fetch_all(self, query, arguments)

    async with Database(database_url) as database, WorkerLock(database_url) as worker:
        runs, work = PostgresRuns(database), PostgresRunWork(database, worker)
        names = ("a", "b", "c")
        nodes = tuple(NewRun(name, depends_on=names[place - 1 : place]) for place, name in enumerate(names))
        started = (await runs.start(nodes)).runs
        monkeypatch.setattr(HotConnection, "fetch_all", counted)
        for name in names:
            claim = await work.claim(started[name], {})
            assert claim is not None
            assert await work.finish(claim, DONE) is not None

    assert len(sent) == 2 * len(names)
