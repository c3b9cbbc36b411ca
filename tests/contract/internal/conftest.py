"""Background flows in process and on real Celery workers, behind one interface (IF-10)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Protocol

import pytest
import redis
from celery import Celery

from internal_flows.catalogue import Catalogue
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.ports.runs.records import ItemRecord, NewRun, RunRecord, Started
from orchestrator.ports.runs.status import ENDED, RedoStatus, RunStatus
from orchestrator.types import DEFAULT_TENANT
from parley.embedded import Stores
from tests.celery_clients import celery_client
from tests.contract.internal.flows import make_catalogue
from tests.contract.internal.in_process import InProcessRunner
from tests.integration.chaos.fleet import Fleet, fleet
from tests.redis_numbers import numbered
from workers.internal.canvas import RunCanvas
from workers.messages.results import use_result_backend

STAND_IN = "tests.contract.internal.stand_in"
_REDIS_NUMBER = 8
_SETTINGS = {"PARLEY_LEASE_TTL_S": "3", "PARLEY_SHUTDOWN_GRACE_S": "0.3"}


class Runner(Protocol):
    """A way to run background flows."""

    catalogue: Catalogue

    async def run(self, run: NewRun) -> list[RunRecord]:
        """Run a flow. Return the records of its whole chain."""
        ...

    async def run_graph(self, nodes: tuple[NewRun, ...]) -> dict[str, RunRecord]:
        """Run a graph. Return the last record of each node."""
        ...

    async def redo(self, run_id: str) -> list[RunRecord]:
        """Rerun a chain manually. Return the added records."""
        ...

    async def items(self, run_id: str) -> list[ItemRecord]: ...

    async def last(self, chain_id: str) -> RunRecord:
        """Wait for the end of a chain. Return its last run."""
        ...


class InProcess:
    def __init__(self) -> None:
        self.catalogue = make_catalogue()
        self._runner = InProcessRunner(self.catalogue)

    async def run(self, run):
        return await self._runner.run(run)

    async def run_graph(self, nodes):
        return await self._runner.run_graph(nodes)

    async def redo(self, run_id):
        return await self._runner.redo(run_id)

    async def items(self, run_id):
        return self._runner.items(run_id)

    async def last(self, chain_id):
        return self._runner.chain(chain_id)[-1]


class OnWorkers:
    """A runner that starts runs in the store, notifies workers and waits for the results."""

    def __init__(self, runs: PostgresRuns, app: Celery) -> None:
        self.catalogue = make_catalogue()
        self.runs = runs
        self.app = app
        self.canvas = RunCanvas(app, runs)

    async def run(self, run):
        started = await self.start((run,))
        return await self.chain_ended(started.runs[run.flow])

    async def run_graph(self, nodes):
        started = await self.start(nodes)
        chains = {name: await self.chain_ended(run_id) for name, run_id in started.runs.items()}
        return {name: chain[-1] for name, chain in chains.items()}

    async def redo(self, run_id):
        before = (await self.runs.get(DEFAULT_TENANT, run_id)).chain_id
        there = len(await self.runs.chain(DEFAULT_TENANT, before))
        started = await self.runs.redo(DEFAULT_TENANT, run_id)
        await self._tell(started)
        return (await self.chain_ended(before))[there:]

    async def items(self, run_id):
        return await self.runs.items(DEFAULT_TENANT, run_id)

    async def last(self, chain_id):
        return (await self.chain_ended(chain_id))[-1]

    async def start(self, nodes: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        started = await self.runs.start(nodes, key=key)
        await self._tell(started)
        return started

    async def chain_ended(self, chain_id: str, within_s: float = 40) -> list[RunRecord]:
        ends_at, pause_s = time.monotonic() + within_s, 0.01
        while True:
            chain = await self.runs.chain(DEFAULT_TENANT, chain_id)
            if chain[-1].status in ENDED and chain[-1].redo is not RedoStatus.SCHEDULED:
                return chain
            assert time.monotonic() < ends_at, f"not ended within {within_s} s: {chain[-1]}"
            await asyncio.sleep(pause_s)
            pause_s = min(1.5 * pause_s, 0.1)  # so that polling a long run doesn't cost more than the run

    async def is_at_work(self, run_id: str, within_s: float = 40) -> None:
        """Wait until a run is running. Fail if it has ended."""
        async with asyncio.timeout(within_s):
            while (record := await self.runs.get(DEFAULT_TENANT, run_id)).status is not RunStatus.RUNNING:
                assert record.status not in ENDED, record
                await asyncio.sleep(0.02)

    async def _tell(self, started: Started) -> None:
        await self.canvas.send(started.hints)


@pytest.fixture(scope="module")
def broker(stores: Stores) -> Iterator[str]:
    """Yield an empty Redis database for the workers of one module."""
    url = numbered(stores.redis_url, _REDIS_NUMBER)
    with redis.Redis.from_url(url, socket_timeout=5) as connection:
        connection.flushdb()
        yield url
        connection.flushdb()


@pytest.fixture(scope="module")
def crew(database_url: str, broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Start two workers that can run these flows."""
    migrate(database_url)
    with fleet(database_url, broker, tmp_path_factory.mktemp("workers"), _SETTINGS) as crew:
        crew.start(2, application=STAND_IN, queues="internal,urgent", threads=16, options=["-E"])
        yield crew


@pytest.fixture
async def on_workers(crew: Fleet) -> AsyncIterator[OnWorkers]:
    with celery_client(crew.redis_url) as app:
        use_result_backend(app)
        async with Database(crew.database_url) as database:
            yield OnWorkers(PostgresRuns(database), app)


@pytest.fixture(params=["in_process", "on_workers"])
def runner(request: pytest.FixtureRequest) -> Runner:
    return InProcess() if request.param == "in_process" else request.getfixturevalue("on_workers")
