"""Submissions by Celery while their consumers are killed: each is accepted once, and soon (RT-27)."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from celery import Celery

from orchestrator.adapters.broker_queues import TASK_QUEUES
from orchestrator.adapters.redis.address import for_celery
from orchestrator.adapters.task_sender import producer_options
from tests.celery_clients import close_results, submit_turn
from tests.integration.chaos.fleet import Fleet, Worker, fleet, wait_until
from tests.integration.chaos.submitting import Sender
from tests.integration.chaos.takeover import percentile
from tests.integration.workers.rabbit import is_installed, rabbit

EVERY_S = 0.05
BETWEEN_KILLS_S = 1.0
SETTLED_S = 5.0
"""Grace period: another consumer handles a killed consumer's message, whose second turn would come late."""
LONG = pytest.mark.slow


class Backend(Sender):
    """It uses only Celery."""

    def __init__(self, broker: str, results: str) -> None:
        super().__init__(EVERY_S)
        self.sent: dict[str, float] = {}
        self._app = Celery(set_as_current=False, broker=for_celery(broker), backend=for_celery(results))
        self._app.conf.update(task_queues=TASK_QUEUES, broker_transport_options=producer_options(broker))

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        close_results(self._app)
        self._app.close()

    def send(self, number: int, session: str) -> None:
        self.sent[session] = time.time()
        submit_turn(self._app, session, "say", ignore_result=True)


@contextmanager
def broker_of(kind: str, redis_url: str, folder: Path) -> Iterator[str]:
    if kind == "redis":
        yield redis_url
        return
    with rabbit(folder / "rabbit") as node:
        yield node.url


def kill_in_turn(crew: Fleet, workers: list[tuple[Worker, str]], kills: int) -> None:
    """Kill the workers one after the other, and start each replacement before the next kill."""
    chance = random.Random(11)
    for _ in range(kills):
        time.sleep(BETWEEN_KILLS_S)
        place = chance.randrange(len(workers))
        worker, queues = workers[place]
        worker.kill()
        following = crew.launch(queues=queues)
        wait_until(following.is_ready, within_s=60, what="the next worker is ready")
        workers[place] = (following, queues)


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("redis", 3),
        pytest.param("redis", 30, marks=LONG),
        pytest.param(
            "rabbitmq", 30, marks=[LONG, pytest.mark.skipif(not is_installed(), reason="no rabbitmq-server")]
        ),
    ],
)
async def test_each_is_accepted_once_and_soon(
    kind: str,
    kills: int,
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with broker_of(kind, redis_url, tmp_path) as broker:
        environment = {} if kind == "redis" else {"PARLEY_BROKER_URL": broker}
        with fleet(database_url, redis_url, tmp_path, environment) as crew:
            roles = ["turns", "submissions", "submissions"]
            workers = [(crew.start(1, queues=queues)[0], queues) for queues in roles]
            with Backend(broker, redis_url) as sender:
                await asyncio.to_thread(kill_in_turn, crew, workers, kills)
            accepted = await asyncio.to_thread(_read_accepted, database_url, sender.prefix, len(sender.sent))

    times = sorted(at - sender.sent[session_id] for session_id, at in accepted)
    with capsys.disabled():
        print(
            f"\n{kind}: {len(sender.sent)} submissions, {kills} kills; until accepted:"
            f" p50 {percentile(times, 50):.3f} s, p99 {percentile(times, 99):.2f} s, at most {max(times):.2f} s"
        )
    assert Counter(session_id for session_id, _ in accepted) == Counter(sender.sent.keys())
    # With so few values, the 99th percentile is the maximum, on a machine loaded by other tests.
    assert percentile(times, 99) <= (2.0 if kills > 10 else 10.0)


def _read_accepted(database_url: str, prefix: str, count: int) -> list[tuple[str, float]]:
    """Return the accepted turns when all have arrived and no more come, or after a long time without new turns."""
    query = "SELECT session_id, extract(epoch FROM accepted_at)::float8 FROM turns WHERE session_id LIKE %s"
    ends_at, rows = time.monotonic() + 30, []
    with psycopg.connect(database_url, autocommit=True) as connection:
        while True:
            before, rows = rows, connection.execute(query, (f"{prefix}-%",)).fetchall()
            if (len(rows) >= count and len(rows) == len(before)) or time.monotonic() > ends_at:
                return rows
            time.sleep(SETTLED_S if len(rows) >= count else 0.1)
