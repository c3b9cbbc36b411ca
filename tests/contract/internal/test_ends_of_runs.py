"""The end of a run, concurrent with new successors (IF-9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from orchestrator.adapters.postgres.claims import WorkerLock
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.runs.starting import identify, store_graph
from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import RunStatus
from orchestrator.ports.runs.work import RunClaim, RunEnd
from orchestrator.types import DEFAULT_TENANT

DONE = RunEnd(RunStatus.DONE)
WAITS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


@dataclass
class Place:
    database: Database
    runs: PostgresRuns
    work: PostgresRunWork

    async def claim(self, run_id: str) -> RunClaim:
        claim = await self.work.claim(run_id, {})
        assert claim is not None
        return claim

    async def status(self, run_id: str) -> RunStatus:
        return (await self.runs.get(DEFAULT_TENANT, run_id)).status


@pytest.fixture
async def place(database_url: str) -> AsyncIterator[Place]:
    """Yield a store with one worker."""
    migrate(database_url)
    async with Database(database_url) as database, WorkerLock(database_url) as worker:
        yield Place(database, PostgresRuns(database), PostgresRunWork(database, worker))


async def test_a_run_that_is_entered_while_the_one_before_it_ends_begins(place: Place) -> None:
    """The snapshot in which a run's end sees successors is older than the lock that the end waits for."""
    first = (await place.runs.start((NewRun("first"),))).runs["first"]
    claim = await place.claim(first)
    second = (NewRun("second", after=first),)
    graph_id, ids = identify(second, None)
    async with place.database.hot_transaction() as entering:
        await store_graph(entering, second, graph_id, ids)
        ending = asyncio.create_task(place.work.finish(claim, DONE))
        async with asyncio.timeout(20):
            while not await place.database.fetch_all(WAITS, {}):
                await asyncio.sleep(0.01)
    hints = await ending

    assert hints is not None
    assert [hint.run_id for hint in hints] == [ids["second"]]
    assert await place.status(ids["second"]) is RunStatus.READY


async def test_the_last_of_two_that_end_at_once_releases_what_waits_for_both(place: Place) -> None:
    """IF-9: both ends decrement one counter."""
    both = {"left", "right"}
    for _ in range(20):
        nodes = (*map(NewRun, sorted(both)), NewRun("joined", depends_on=tuple(sorted(both))))
        started = (await place.runs.start(nodes)).runs
        claims = [await place.claim(started[name]) for name in both]
        ends = await asyncio.gather(*(place.work.finish(claim, DONE) for claim in claims))

        assert sorted(len(hints or ()) for hints in ends) == [0, 1]
        assert await place.status(started["joined"]) is RunStatus.READY


async def test_a_claim_that_was_taken_away_ends_nothing(place: Place) -> None:
    """IF-9"""
    run_id = (await place.runs.start((NewRun("fenced"),))).runs["fenced"]
    claim = await place.claim(run_id)
    await place.runs.cancel(DEFAULT_TENANT, run_id)

    assert await place.work.finish(claim, DONE) is None
    assert await place.status(run_id) is RunStatus.CANCELLED
