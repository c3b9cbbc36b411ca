"""A submission is an ordinary task: Celery's canvas guide with a plain client and its own queue (RT-30)."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from celery import Celery
from celery.utils import uuid

from orchestrator.adapters.redis.address import for_celery
from parley.embedded import Stores
from tests.celery_clients import connected
from tests.integration.chaos.fleet import ROOT, Fleet, fleet, wait_until
from tests.integration.front_door.canvases import CANVASES, Sender, sessions_twice, settle
from tests.integration.front_door.plain_backend import THEIRS, make_app
from tests.integration.workers.rabbit import is_installed, rabbit
from tests.processes.servers import running
from tests.redis_numbers import numbered

WITHOUT = pytest.mark.skipif(not is_installed(), reason="Debian's package rabbitmq-server is not installed")
REDIS_NUMBER = 11
"""A Redis database for the whole module."""
QUICK_S, KILLED_S = 30.0, 90.0
FIRST_KILL_S, BETWEEN_KILLS_S = 0.02, 0.75


@contextmanager
def their_worker(broker: str, redis_url: str, log: Path) -> Iterator[None]:
    """Yield a worker of a plain Celery application."""
    addresses = {"THEIR_BROKER": broker, "THEIR_RESULTS": for_celery(redis_url), "THEIR_LOG": redis_url}
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **addresses}
    command = [
        *(sys.executable, "-m", "celery", "-A", "tests.integration.front_door.plain_backend", "worker"),
        *("-P", "threads", "-c", "4", "-Q", THEIRS, "-n", "theirs@test", "-l", "INFO", "--without-gossip"),
    ]
    with running(command, log, lambda: b"ready." in log.read_bytes(), env=environment, cwd=ROOT):
        yield


@dataclass(frozen=True)
class World:
    """A broker with Parley's workers and a foreign worker."""

    kind: str
    database_url: str
    crew: Fleet
    app: Celery
    server: redis.Redis


@pytest.fixture(scope="module", params=["redis", pytest.param("rabbitmq", marks=[WITHOUT, pytest.mark.slow])])
def world(
    request: pytest.FixtureRequest,
    database_url: str,
    stores: Stores,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("canvas")
    redis_url = numbered(stores.redis_url, REDIS_NUMBER)
    with redis.Redis.from_url(redis_url) as server:
        server.flushdb()
    with ExitStack() as stack:
        environment = {"PARLEY_LEASE_TTL_S": "3"}
        broker = for_celery(redis_url)
        if request.param == "rabbitmq":
            broker = stack.enter_context(rabbit(folder / "node")).url
            environment["PARLEY_BROKER_URL"] = broker
        crew = stack.enter_context(fleet(database_url, redis_url, folder, environment))
        crew.start(1, queues="turns")
        crew.start(1, queues="submissions")
        stack.enter_context(their_worker(broker, redis_url, folder / "their.log"))
        app = stack.enter_context(connected(make_app(broker, for_celery(redis_url))))
        server = stack.enter_context(redis.Redis.from_url(redis_url))
        yield World(request.param, database_url, crew, app, server)


@pytest.fixture(params=[None, 60], ids=["receipt", "wait"])
def wait(request: pytest.FixtureRequest) -> float | None:
    return request.param


def sender_of(world: World, wait: float | None, name: str, words: str, within_s: float) -> Sender:
    return Sender(world.app, world.server, wait, name, words, within_s)


@pytest.mark.parametrize("canvas", CANVASES, ids=lambda canvas: canvas.__name__)
def test_a_turn_behaves_as_a_task(world: World, wait: float | None, canvas: Callable[[Sender], None]) -> None:
    canvas(sender_of(world, wait, f"{canvas.__name__}.{world.kind}.{wait}", "say", QUICK_S))


def test_a_callback_that_is_sent_again_has_the_same_id(world: World) -> None:
    """A message is redelivered if its worker is killed after the callbacks and before the acknowledgment."""
    sender = sender_of(world, None, f"redelivered.{world.kind}", "say", QUICK_S)
    turn = sender.turn("a")
    turn.freeze()
    for tag in ("one", "two"):
        turn.link(sender.note(tag))
    for deliveries in (1, 2):
        turn.apply_async()
        for tag in ("one", "two"):
            wait_until(partial(was_called, sender, tag, deliveries), within_s=QUICK_S, what="it was called")
    for tag in ("one", "two"):
        assert len(sender.noted(tag)) == 1


def was_called(sender: Sender, tag: str, times: int) -> bool:
    return len(sender.calls(tag)) == times


def test_a_chord_ends_though_the_worker_that_claimed_its_body_was_killed(
    world: World, wait: float | None
) -> None:
    """Celery's claim outlives the worker, so the redelivered part counts as the last."""
    sender = sender_of(world, wait, f"claimed.{world.kind}.{wait}", "say", QUICK_S)
    body, group_id = sender.note("body"), uuid()
    body.freeze()
    backend: Any = world.app.backend
    parts = [sender.turn(str(number)) for number in range(2)]
    for place, part in enumerate(parts):
        part.freeze(group_id=group_id, chord=body, group_index=place)
    backend.set_chord_size(group_id, len(parts))
    backend.client.set(backend.get_key_for_group(group_id, ".c"), "of a killed worker", ex=2)
    given = [sender.get(part.apply_async()) for part in parts]
    assert sender.noted("body") == [[given]]


@pytest.mark.slow
@pytest.mark.parametrize("canvas", CANVASES, ids=lambda canvas: canvas.__name__)
def test_workers_are_killed_in_the_middle(
    world: World, wait: float | None, canvas: Callable[[Sender], None]
) -> None:
    """Each worker is killed in turn while the canvas is running; every turn exists once."""
    name = f"killed.{canvas.__name__}.{world.kind}.{wait}"
    over = threading.Event()
    killer = threading.Thread(target=_kill_in_turn, args=(world.crew, over))
    killer.start()
    try:
        canvas(sender_of(world, wait, name, "wait 1", KILLED_S))
    finally:
        over.set()
        killer.join()
    settle(1.0)
    with psycopg.connect(world.database_url) as connection:
        query = "SELECT session_id, count(*) FROM turns WHERE session_id LIKE %s GROUP BY 1"
        assert sessions_twice(connection.execute(query, (f"{name}-%",)).fetchall()) == []


def _kill_in_turn(crew: Fleet, over: threading.Event) -> None:
    """Kill the worker of each queue in turn, and start another, because the first may have taken all messages."""
    alive = {worker.queues: worker for worker in crew.workers if worker.process.poll() is None}
    pause_s = FIRST_KILL_S
    for queues in ("submissions", "turns") * 3:
        if over.wait(pause_s):
            return
        alive[queues].kill()
        alive[queues] = crew.launch(queues=queues)
        wait_until(alive[queues].is_ready, within_s=60, what="the next worker is ready")
        pause_s = BETWEEN_KILLS_S
