"""Submissions wait in the broker while a store is down or refuses writes, and no process ends (RT-34)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
import redis
from celery import Celery
from celery.exceptions import TaskRevokedError

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.redis.address import for_celery
from parley.embedded import Store, open_database, open_redis
from tests.celery_clients import connected
from tests.integration.chaos.fleet import Fleet, fleet, wait_until
from tests.integration.chaos.submitting import Sender
from tests.integration.front_door.plain_backend import make_app

EVERY_S = 0.25


@dataclass(frozen=True)
class World:
    """Separate stores that the test can break, with Parley's workers."""

    database: Store
    redis: Store
    crew: Fleet
    app: Celery

    def run(self, statement: str) -> None:
        with psycopg.connect(self.database.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def rows(self, query: str, *arguments: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.database.url, autocommit=True) as connection:
            return connection.execute(query.encode(), arguments).fetchall()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    tmp_path = tmp_path_factory.mktemp("world")
    with ExitStack() as stack:
        (tmp_path / "stores").mkdir()
        database = stack.enter_context(open_database(tmp_path / "stores", durable=False))
        server = stack.enter_context(open_redis(tmp_path / "stores", durable=False))
        migrate(database.url)
        crew = stack.enter_context(fleet(database.url, server.url, tmp_path, {"PARLEY_LEASE_TTL_S": "3"}))
        for queues in ("turns", "submissions", "submissions"):
            crew.start(1, queues=queues)
        crew.start(1, application="workers.app", queues="internal,urgent")
        url = for_celery(server.url)
        app = stack.enter_context(connected(make_app(url, url)))
        yield World(database, server, crew, app)


class Backend(Sender):
    """It sends until the broker has accepted the turn."""

    def __init__(self, app: Celery) -> None:
        super().__init__(EVERY_S)
        self.results: dict[str, Any] = {}
        self._app = app

    def send(self, number: int, session: str) -> None:
        arguments = {"session_id": session, "text": "say", "domain": "counting"}
        if number % 2:
            arguments["wait"] = 300
        sent = self._try(arguments, f"task-{session}", ignored=number % 3 == 0)
        if sent is not None:
            self.results[session] = sent

    def _try(self, arguments: dict[str, Any], task_id: str, *, ignored: bool) -> Any:
        """Send until the broker has the message. The ID detects a message that only seemed lost."""
        while True:
            try:
                return self._app.send_task(
                    "orchestrator.submit_turn",
                    kwargs=arguments,
                    queue="submissions",
                    task_id=task_id,
                    ignore_result=ignored,
                )
            except Exception:  # noqa: BLE001 - a plain client of a broker that takes nothing
                if self.stopped.wait(EVERY_S):
                    return None


@contextmanager
def database_frozen(world: World, _folder: Path) -> Iterator[None]:
    """Freeze all processes of PostgreSQL."""
    server = psutil.Process(world.database.child.pid)
    family = [server, *server.children(recursive=True)]
    for process in family:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in reversed(family):
            process.send_signal(signal.SIGCONT)


@contextmanager
def _changed(world: World, change: Callable[[redis.Redis], object], back: Callable[[redis.Redis], object]):
    with redis.Redis.from_url(world.redis.url) as client:
        change(client)
        try:
            yield
        finally:
            back(client)


def redis_is_a_replica(world: World, _folder: Path) -> AbstractContextManager[None]:
    """READONLY, as during a failover."""
    return _changed(world, lambda it: it.replicaof("127.0.0.1", 1), lambda it: it.replicaof("NO", "ONE"))


def redis_has_no_replicas(world: World, _folder: Path) -> AbstractContextManager[None]:
    """NOREPLICAS"""
    name = "min-replicas-to-write"
    return _changed(world, lambda it: it.config_set(name, 1), lambda it: it.config_set(name, 0))


@contextmanager
def redis_cannot_save(world: World, _folder: Path) -> Iterator[None]:
    """MISCONF, as with a full disk: the dump process was killed, and the next is slow."""
    server = psutil.Process(world.redis.child.pid)
    with redis.Redis.from_url(world.redis.url) as client:
        client.config_set("appendonly", "no")
        client.config_set("rdb-key-save-delay", 10_000_000)
        client.config_set("save", "1 1")
        client.set("kept", "1")
        client.bgsave()
        wait_until(server.children, within_s=20, what="a process writes the dump")
        server.children()[0].kill()
        wait_until(lambda: _refuses(client), within_s=20, what="Redis refuses writes")
        try:
            yield
        finally:
            client.config_set("save", "")


@contextmanager
def disk_of_the_database_is_full(world: World, folder: Path) -> Iterator[None]:
    """A tablespace of 24 MB contains the turns, and other data fill it."""
    place = folder / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=1777", "tmpfs", str(place)], check=True)
    try:
        owner = psutil.Process(world.database.child.pid).uids().real
        (place / "space").mkdir()
        os.chown(place / "space", owner, -1)
        world.run(f"CREATE TABLESPACE small LOCATION '{place / 'space'}'")
        world.run("ALTER TABLE turns SET TABLESPACE small")
        with (place / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while filler.write(b"x" * 4096):
                pass
        yield
        (place / "filler").unlink()
        wait_until(lambda: not _open_turns(world), within_s=60, what="all turns have ended")
        world.run("ALTER TABLE turns SET TABLESPACE pg_default")
        world.run("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def _open_turns(world: World) -> bool:
    return bool(world.rows("SELECT FROM turns WHERE finished_at IS NULL"))


def _refuses(client: redis.Redis) -> bool:
    try:
        client.set("asked", "1")
    except redis.ResponseError as error:
        return "MISCONF" in str(error)
    return False


LONG = pytest.mark.slow
Outage = Callable[[World, Path], AbstractContextManager[None]]


@pytest.mark.parametrize(
    ("outage", "seconds"),
    [
        (database_frozen, 4),
        pytest.param(redis_is_a_replica, 4, marks=LONG),
        pytest.param(redis_has_no_replicas, 4, marks=LONG),
        pytest.param(redis_cannot_save, 10, marks=LONG),
        pytest.param(database_frozen, 60, marks=LONG),
        pytest.param(redis_is_a_replica, 20, marks=LONG),
        pytest.param(
            disk_of_the_database_is_full,
            20,
            marks=[LONG, pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")],
        ),
    ],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_submissions_of_an_outage_end_done_and_once(
    world: World, outage: Outage, seconds: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Backend(world.app) as sender:
        time.sleep(1)
        with outage(world, tmp_path):
            time.sleep(seconds)
        over_at = time.monotonic()
        time.sleep(2)
    query = "SELECT session_id, status FROM turns WHERE session_id LIKE %s"

    def ended() -> list[tuple[Any, ...]]:
        return [row for row in world.rows(query, f"{sender.prefix}-%") if row[1] == "done"]

    wait_until(lambda: len(ended()) >= len(sender.results), within_s=90, what="all that were sent are done")
    took_s = time.monotonic() - over_at
    for session, result in sender.results.items():
        if not result.ignored:
            assert result.get(timeout=60, interval=0.05)["session_id"] == session
    rows = Counter(session for session, _ in world.rows(query, f"{sender.prefix}-%"))
    with capsys.disabled():
        print(f"\n{outage.__name__} {seconds} s: {len(rows)} submissions, all done {took_s:.1f} s after it")
    assert rows == Counter(sender.results.keys())
    assert [worker.log for worker in world.crew.workers if worker.process.poll() is not None] == []


def test_a_submission_expires_in_an_outage(world: World) -> None:
    arguments = {"session_id": "expires", "text": "say", "domain": "counting"}
    with database_frozen(world, Path()):
        sent = world.app.send_task(
            "orchestrator.submit_turn", kwargs=arguments, queue="submissions", expires=3
        )
        time.sleep(6)
    with pytest.raises(TaskRevokedError, match="expired"):
        sent.get(timeout=40, interval=0.05)
    # The frozen server may already have the statement, and executes it after waking up.
    assert world.rows("SELECT status FROM turns WHERE session_id = 'expires'") in ([], [("cancelled",)])
