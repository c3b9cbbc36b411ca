"""All durability ports on three stores: in memory, on PostgreSQL, and on PostgreSQL through a pooler."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from orchestrator.adapters.postgres.claims import WorkerLock
from orchestrator.adapters.postgres.events import PostgresEventLog
from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.adapters.postgres.memory.records import PostgresRecords
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.turns.approvals import PostgresApprovals
from orchestrator.adapters.postgres.turns.archive import PostgresArchive, PostgresEffects, PostgresFeedback
from orchestrator.adapters.postgres.turns.inbox import PostgresInbox
from orchestrator.adapters.postgres.turns.outbox import PostgresOutbox
from orchestrator.adapters.postgres.turns.scheduled import PostgresScheduledEvents
from orchestrator.domain.services import Records
from orchestrator.ports.lane import Lane
from orchestrator.ports.outbox import Outbox
from orchestrator.ports.scheduled import ScheduledEvents
from orchestrator.ports.sessions import Sessions
from orchestrator.ports.turns import Approvals, Effects, EventLog, Inbox
from orchestrator.turns.lease import Lease
from orchestrator.types import SessionId, TenantId, new_id
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.memory import MemoryRecords
from parley.testing.scheduled import MemoryScheduledEvents
from parley.testing.store import ManualClock, MemoryStore
from tests.contract.factories import claim, new_session_id, submission
from tests.contract.in_memory.approvals import MemoryApprovals
from tests.contract.in_memory.archive import MemoryEffects, MemoryEventLog, MemoryOutbox
from tests.contract.in_memory.sessions import MemorySessions
from tests.integration.deploy.fixtures.pooler import PROGRAM, pooler

_SHIFTED = {
    "lanes": ("lease_until", "ready_at", "check_at", "gap_at"),
    "turns": ("accepted_at", "deadline_at"),
    "outbox": ("sent_at",),
    "scheduled_events": ("not_before",),
}


DURABLE = pytest.mark.parametrize("ports", ["postgres", "pooler"], indirect=True)
"""A mark for features that in-memory stores lack: suspected turns, lost hints, gap limits, archives."""


@dataclass
class Ports:
    """The ports of one store.

    Args:
        elapse: advances the store's clock by seconds.
        kill: ends a worker without a shutdown.
        archive, feedback: only of a database.
    """

    inbox: Inbox
    sessions: Sessions
    log: EventLog
    effects: Effects
    approvals: Approvals
    outbox: Outbox
    scheduled: ScheduledEvents
    make_inbox: Callable[..., Inbox]
    make_lane: Callable[..., Awaitable[Lane]]
    kill: Callable[[Lane], Awaitable[None]]
    elapse: Callable[[float], Awaitable[None]]
    make_records: Callable[[TenantId, str], Records]
    archive: Any = None
    feedback: Any = None


async def begin(ports: Ports, tenant: TenantId) -> tuple[Lane, Lease]:
    """Submit the first turn of a new session, and claim it."""
    session_id = new_session_id()
    await ports.inbox.submit(submission(tenant, session_id, create_session=True, domain="travel"))
    return await hold(ports, session_id)


async def hold(ports: Ports, session_id: SessionId, **options: Any) -> tuple[Lane, Lease]:
    """Claim a session by a new worker. `options`: of its lane."""
    lane = await ports.make_lane(**options)
    return lane, await claim(lane, session_id)


async def new_session(ports: Ports, tenant: TenantId, **options: Any) -> SessionId:
    made = await ports.sessions.create(tenant, "travel", session_id=new_session_id(), **options)
    return made.session_id


def _memory_ports() -> Ports:
    clock = ManualClock()
    store = MemoryStore(clock)

    async def make_lane(**options: Any) -> Lane:
        return MemoryLane(store, **options)

    async def kill(lane: Lane) -> None:
        assert isinstance(lane, MemoryLane)
        lane.die()

    async def elapse(seconds: float) -> None:
        clock.advance(seconds)

    return Ports(
        inbox=MemoryInbox(store),
        sessions=MemorySessions(store),
        log=MemoryEventLog(store),
        effects=MemoryEffects(store),
        approvals=MemoryApprovals(store),
        outbox=MemoryOutbox(store),
        scheduled=MemoryScheduledEvents(store),
        make_inbox=lambda **limits: MemoryInbox(store, **limits),
        make_lane=make_lane,
        kill=kill,
        elapse=elapse,
        make_records=lambda tenant_id, domain: MemoryRecords(store, tenant_id, domain),
    )


def postgres_ports(url: str, database: Database, stack: AsyncExitStack) -> Ports:
    workers: dict[Lane, WorkerLock] = {}

    async def make_lane(**options: Any) -> Lane:
        worker = await stack.enter_async_context(WorkerLock(url))
        lane = PostgresLane(database, worker, **options)
        workers[lane] = worker
        return lane

    async def kill(lane: Lane) -> None:
        """Close the worker's connection, and wait until the server has noticed."""
        worker = workers[lane]
        number = worker.worker_id
        await worker.__aexit__(None, None, None)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            held = (
                "SELECT 1 FROM workers JOIN pg_stat_activity AS connection ON connection.pid = workers.backend_pid"
                " AND connection.backend_start = workers.backend_start WHERE worker_id = %s"
            )
            while await (await connection.execute(held, (number,))).fetchone():
                pass

    async def elapse(seconds: float) -> None:
        """Move stored times back, as if the database's clock had advanced."""
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            for table, columns in _SHIFTED.items():
                moves = ", ".join(
                    f"{column} = {column} - make_interval(secs => {seconds})" for column in columns
                )
                await connection.execute(f"UPDATE {table} SET {moves}".encode())

    return Ports(
        inbox=PostgresInbox(database),
        sessions=PostgresSessions(database),
        log=PostgresEventLog(database),
        effects=PostgresEffects(database),
        approvals=PostgresApprovals(database),
        outbox=PostgresOutbox(database),
        scheduled=PostgresScheduledEvents(database, PostgresInbox(database)),
        make_inbox=lambda **limits: PostgresInbox(database, **limits),
        make_lane=make_lane,
        kill=kill,
        elapse=elapse,
        make_records=lambda tenant_id, domain: PostgresRecords(database, tenant_id, domain),
        archive=PostgresArchive(database),
        feedback=PostgresFeedback(database),
    )


@pytest.fixture(scope="module")
def pooled_url(database_url: str) -> Iterator[str]:
    """Return the URL of the module's database through a pooler."""
    if not PROGRAM.exists():
        pytest.skip("Debian's package pgbouncer is not installed")
    with pooler([database_url]) as (url,):
        yield url


@pytest.fixture(params=["memory", "postgres", "pooler"])
async def ports(request: pytest.FixtureRequest) -> AsyncIterator[Ports]:
    if request.param == "memory":
        yield _memory_ports()
        return
    url = request.getfixturevalue("database_url")
    async with AsyncExitStack() as stack:
        described = (
            Database(url)
            if request.param == "postgres"
            else Database(request.getfixturevalue("pooled_url"), pooled=True)
        )
        yield postgres_ports(url, await stack.enter_async_context(described), stack)


@pytest.fixture
def tenant() -> TenantId:
    """Return a new tenant, so that data of other tests is invisible."""
    return TenantId(new_id("tenant"))
