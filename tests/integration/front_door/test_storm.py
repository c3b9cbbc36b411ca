"""Many submissions by Celery: shuffled, some twice, while workers are killed (RT-17, RT-27)."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from orchestrator.adapters.redis.address import for_celery
from tests.celery_clients import submit_turn
from tests.integration.chaos.fleet import Fleet, Worker, fleet, wait_until
from tests.integration.front_door.plain_backend import make_app
from tests.integration.workers.rabbit import is_installed, rabbit

QUEUES = ("turns", "turns", "submissions", "submissions")
SENT_TWICE = 0.1
SESSIONS, TURNS = 200, 10
KILL_EVERY_S = 2.0
RABBIT = pytest.mark.skipif(not is_installed(), reason="Debian's package rabbitmq-server is not installed")


@contextmanager
def killing(crew: Fleet) -> Iterator[list[Worker]]:
    """Kill and replace the workers in turn until the block ends. Yield the killed workers."""
    alive = [(queues, crew.start(1, queues=queues)[0]) for queues in QUEUES]
    killed: list[Worker] = []
    over = threading.Event()

    def kill() -> None:
        for place in itertools.cycle(range(len(alive))):
            if over.wait(KILL_EVERY_S):
                return
            queues, victim = alive[place]
            victim.kill()
            killed.append(victim)
            alive[place] = queues, crew.launch(queues=queues)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("broker", ["redis", pytest.param("rabbitmq", marks=RABBIT)])
def test_all_are_answered_once_and_in_order(
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    broker: str,
) -> None:
    """`chaos/test_killed_submissions.py` has a short form."""
    chance = random.Random(200)
    prefix = f"storm-{broker}"
    wanted = [(f"{prefix}-{n}", number) for n in range(SESSIONS) for number in range(1, TURNS + 1)]
    sent = wanted + chance.sample(wanted, int(SENT_TWICE * len(wanted)))
    chance.shuffle(sent)
    with ExitStack() as stack:
        environment = {"PARLEY_LEASE_TTL_S": "3", "PARLEY_SEQUENCE_GAP_TIMEOUT_S": "120"}
        address = for_celery(redis_url)
        if broker == "rabbitmq":
            address = stack.enter_context(rabbit(tmp_path / "node")).url
            environment["PARLEY_BROKER_URL"] = address
        crew = stack.enter_context(fleet(database_url, redis_url, tmp_path, environment))
        app: Any = stack.enter_context(make_app(address, for_celery(redis_url)))
        killed = stack.enter_context(killing(crew))
        began = time.monotonic()
        results = [submit(app, session, number) for session, number in sent]
        receipts = [result.get(timeout=300, interval=0.05) for result in results]
        ended = f"SELECT count(*) FROM turns WHERE session_id LIKE '{prefix}-%' AND status = 'done'"
        with psycopg.connect(database_url, autocommit=True) as connection:

            def count() -> int:
                [(found,)] = connection.execute(ended.encode()).fetchall()
                return found

            wait_until(lambda: count() >= len(wanted), within_s=120, what="all are done", look_every_s=0.2)
            took_s = time.monotonic() - began
            rows = connection.execute(
                "SELECT session_id, client_sequence, (result->>'reply')::int, turn_id FROM turns"
                " WHERE session_id LIKE %s ORDER BY session_id, client_sequence",
                [f"{prefix}-%"],
            ).fetchall()
        kills = len(killed)
    with capsys.disabled():
        print(f"\n{broker}: {SESSIONS} × {TURNS} in {took_s:.1f} s, {kills} kills, {len(results)} receipts")
    # The counting agent answers with the turn count.
    assert [row[:3] for row in rows] == [(name, number, number) for name, number in sorted(wanted)]
    turn_ids = {(session, number): turn_id for session, number, _, turn_id in rows}
    assert [receipt["turn_id"] for receipt in receipts] == [turn_ids[one] for one in sent]


def submit(app: Any, session: str, number: int) -> Any:
    """Submit a turn by number. The repeated message has the same key and another ID."""
    return submit_turn(app, session, "say", sequence=number, idempotency_key=f"{session}-{number}")
