"""A daily report appears in the conversation once each time (IF-15)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from internal_flows.schedule import read_jobs
from orchestrator.adapters.domains.folder import served_folders
from orchestrator.bootstrap import Ports, open_ports
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import ENDED, RunStatus
from orchestrator.settings import Settings
from orchestrator.types import DEFAULT_TENANT, Json, SessionId, new_id
from tests.conversation import say
from tests.integration.chaos.fleet import Fleet, fleet
from workers.internal.catalogue import FlowSettings, own_flows

ORDER = "send me a report on cars every day"
BACK_DATE = "UPDATE records SET document = document || jsonb_build_object('made_at', %s::float)"
REPORTS = "SELECT count(*) FROM turns WHERE session_id = %s AND kind = 'system' AND status = 'done'"


@pytest.fixture
async def ports(database_url: str, module_redis_url: str) -> AsyncIterator[Ports]:
    async with open_ports(Settings(DATABASE_URL=database_url, REDIS_URL=module_redis_url)) as opened:
        yield opened


@pytest.fixture(scope="module")
def crew(
    database_url: str, module_redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    with fleet(database_url, module_redis_url, tmp_path_factory.mktemp("crew")) as started:
        started.start(1, application="workers.app", queues="turns,submissions,internal,urgent")
        yield started


@pytest.fixture
def session() -> SessionId:
    return SessionId(new_id("standing"))


async def fire(ports: Ports) -> Json:
    """Do what beat does every minute."""
    started = await ports.stores.runs.start((NewRun("send_reports"),))
    await ports.messages.send_runs(started)
    run_id = started.runs["send_reports"]
    while (record := await ports.stores.runs.get(DEFAULT_TENANT, run_id)).status not in ENDED:
        await asyncio.sleep(0.05)
    assert record.status is RunStatus.DONE, record.error
    return record.closing


def test_beat_fires_it_every_minute() -> None:
    """Regardless of the process's default domain."""
    folders = served_folders("travel")
    jobs = {job.name: job for job in read_jobs(FlowSettings(folders).schedule()).jobs}
    assert jobs["send_reports"].every_s == 60
    assert jobs["send_reports"].trigger in {flow.trigger for folder in folders for flow in own_flows(folder)}


async def test_a_report_comes_once_for_each_time_until_the_order_is_cancelled(
    ports: Ports, crew: Fleet, session: SessionId, database_url: str
) -> None:
    assert crew.workers
    assert "in this conversation" in (await say(ports, session, ORDER, "analytics"))["reply"]
    assert await fire(ports) == {"sent": 0, "cancelled": 0}, "the first time is yet to come"

    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(BACK_DATE, (time.time() - 86_400 - 60,))
        assert await fire(ports) == {"sent": 1, "cancelled": 0}
        assert await fire(ports) == {"sent": 0, "cancelled": 0}, "once"
        async with asyncio.timeout(60):
            while connection.execute(REPORTS, (session,)).fetchone() != (1,):
                await asyncio.sleep(0.1)
        row = connection.execute(
            "SELECT reply FROM utterances WHERE session_id = %s AND role = 'system'", (session,)
        ).fetchone()
        assert row is not None
        assert row[0].startswith("Report on cars")

        await say(ports, session, "cancel my schedule", "analytics")
        await say(ports, session, "yes", "analytics")
        connection.execute(BACK_DATE, (time.time() - 5 * 86_400 - 60,))
        assert await fire(ports) == {"sent": 0, "cancelled": 0}


async def test_an_order_ends_with_its_conversation(
    ports: Ports, crew: Fleet, session: SessionId, database_url: str
) -> None:
    assert crew.workers
    await say(ports, session, ORDER, "analytics")
    await ports.stores.sessions.close(DEFAULT_TENANT, session)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(BACK_DATE, (time.time() - 86_400 - 60,))
    assert await fire(ports) == {"sent": 0, "cancelled": 1}
    assert await fire(ports) == {"sent": 0, "cancelled": 0}
