"""Redis with a replica and sentinels: after losing the master, work continues with the replica (RT-18, RT-21)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.fleet import fleet
from tests.integration.chaos.submitting import all_finished, submitter
from tests.integration.deploy.fixtures.sentinels import Replicated, replicated_redis
from tests.integration.deploy.fixtures.tls import REDIS
from tests.processes.forked import run

SESSIONS = 12

pytestmark = [
    pytest.mark.skipif(not REDIS.exists(), reason="Debian's package redis-server is not installed"),
]


@pytest.fixture(scope="module")
def replicated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicated]:
    with replicated_redis(tmp_path_factory.mktemp("replicated")) as made:
        yield made


def submit_by_queue(url: str, session: str) -> Any:
    """Submit like another process that uses only Celery and the broker."""
    command = ("-m", "tests.integration.deploy.fixtures.backend", url, session)
    backend = run(command, environment=os.environ)
    return orjson.loads(backend.stdout)


def test_the_doctor_looks_at_the_master(database: str, replicated: Replicated) -> None:
    environment = {**os.environ, "DATABASE_URL": database, "REDIS_URL": replicated.url}
    said = run(("-m", "parley", "doctor", "--preflight"), environment=environment).stdout
    assert "redis memory no keys are evicted" in " ".join(said.split()), said
    assert not [line for line in said.splitlines() if line.startswith("BAD") and "redis" in line]


async def test_turns_go_on_with_another_master(database: str, replicated: Replicated, tmp_path: Path) -> None:
    with fleet(database, replicated.url, tmp_path) as crew:
        await asyncio.to_thread(crew.start, 2)
        async with submitter(database, replicated.url) as outside:
            sessions = [f"watched-{n}" for n in range(SESSIONS)]
            await outside.submit_all(sessions, 3, lambda _: "effect wait 0.1")
            await asyncio.to_thread(replicated.kill_master)
            await outside.submit_all(sessions, 3, lambda _: "effect")
            await all_finished(database, within_s=60)
        by_queue = await asyncio.to_thread(submit_by_queue, replicated.url, "by-queue")
    assert by_queue["status"] == "done", by_queue
    history = read_history(database, outside.accepted)
    assert len(outside.accepted) == SESSIONS * 6
    assert check(history) == []
