"""Maintenance is deferred for turns, ages, and reports its progress, on real workers (IF-14, IF-16)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.adapters.postgres.events import PostgresEventLog
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.status import PostgresStatus
from orchestrator.adapters.postgres.turns.inbox import PostgresInbox
from orchestrator.ports.runs.status import RunStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, TurnId
from tests.celery_clients import celery_client
from tests.contract.factories import new_session_id, opening
from tests.contract.internal.conftest import STAND_IN, OnWorkers
from tests.integration.chaos.fleet import Fleet, fleet, wait_until


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    migrate(database_url)
    async with Database(database_url) as database:
        yield database


@contextmanager
def crew(database_url: str, broker: str, logs: Path, **settings: str) -> Iterator[tuple[Fleet, OnWorkers]]:
    """Start one worker for background flows and none for turns."""
    with fleet(database_url, broker, logs, {"PARLEY_SHUTDOWN_GRACE_S": "0.3", **settings}) as workers:
        workers.start(1, application=STAND_IN, queues="internal,urgent", threads=4)
        with celery_client(broker) as app:
            yield workers, lambda database: OnWorkers(PostgresRuns(database), app)


async def let_a_turn_wait(database: Database) -> TurnId:
    """Submit a turn, which no worker runs."""
    return (await PostgresInbox(database).submit(opening(new_session_id()))).turn_id


def is_put_off(workers: Fleet) -> Callable[[], bool]:
    return lambda: "Maintenance is deferred." in workers.workers[0].log.read_text()


async def test_maintenance_waits_while_turns_wait_and_what_a_turn_waits_for_does_not(
    database: Database, database_url: str, broker: str, tmp_path: Path
) -> None:
    """IF-14: deferred runs appear in the session's backlog, and run when no turn waits."""
    load, inbox = PostgresStatus(database), PostgresInbox(database)
    session = new_session_id()
    with crew(database_url, broker, tmp_path, PARLEY_DEFER_ABOVE_S="0.2", PARLEY_DEFER_AT_MOST_S="600") as (
        workers,
        make,
    ):
        on_workers = make(database)
        turn_id = await let_a_turn_wait(database)
        await asyncio.to_thread(wait_until, is_put_off(workers), within_s=20, what="it stands back")
        assert await load.turn_wait_s() > 0.2
        new_run = on_workers.catalogue.new_run
        put_off = await on_workers.start((new_run("doubling", inputs=(1, 2), session_id=session),))
        urgent = await on_workers.run(new_run("pressing", inputs=(1, 2), session_id=session))

        assert urgent[-1].status is RunStatus.DONE
        record = await on_workers.runs.get(DEFAULT_TENANT, put_off.runs["doubling"])
        assert record.status is RunStatus.READY
        [waiting] = await load.backlog(DEFAULT_TENANT)
        assert (waiting.session_id, waiting.runs) == (session, 1)
        assert waiting.oldest_s > 0

        await inbox.cancel(DEFAULT_TENANT, turn_id)
        chain = await on_workers.chain_ended(put_off.runs["doubling"])

    assert chain[-1].status is RunStatus.DONE
    assert await load.backlog(DEFAULT_TENANT) == []


async def test_maintenance_ages_and_never_starves(
    database: Database, database_url: str, broker: str, tmp_path: Path
) -> None:
    """IF-14: even if turns keep waiting."""
    with crew(database_url, broker, tmp_path, PARLEY_DEFER_ABOVE_S="0.2", PARLEY_DEFER_AT_MOST_S="2") as (
        workers,
        make,
    ):
        on_workers = make(database)
        turn_id = await let_a_turn_wait(database)
        await asyncio.to_thread(wait_until, is_put_off(workers), within_s=20, what="it stands back")
        began = time.monotonic()
        chain = await on_workers.run(on_workers.catalogue.new_run("doubling", inputs=tuple(range(5))))
        took_s = time.monotonic() - began

    assert chain[-1].closing == [0, 2, 4, 6, 8]
    assert took_s >= 2
    await PostgresInbox(database).cancel(DEFAULT_TENANT, turn_id)


async def test_sessions_hear_how_far_their_runs_have_come(database: Database, on_workers: OnWorkers) -> None:
    """RT-15: the session's log has the progress at intervals and at the end."""
    session = (await PostgresSessions(database).create(DEFAULT_TENANT, "travel")).session_id
    run = on_workers.catalogue.new_run(
        "doubling", inputs=tuple(range(200)), parameters={"takes_s": 0.03}, session_id=session
    )
    [record] = await on_workers.run(run)
    events = await told(database, session)

    assert {event.payload["run_id"] for event in events} == {record.run_id}
    done = [event.payload["ended"] for event in events]
    assert done == sorted(done)
    assert 1 < len(done) < 20
    last = events[-1].payload
    assert (last["status"], last["items"], last["ended"]) == ("done", 200, 200)


async def told(database: Database, session: SessionId) -> list:
    """Return the session's events about runs, once a run has ended."""
    ends_at = time.monotonic() + 20
    while True:
        events = await PostgresEventLog(database).read(DEFAULT_TENANT, session)
        found = [event for event in events if event.type == "run_progress"]
        if found and found[-1].payload["status"] != "running":
            return found
        assert time.monotonic() < ends_at, events
        await asyncio.sleep(0.05)
