"""Liveness and readiness of every role are correct during any outage and after it (RT-24)."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.errors import Unavailable
from parley.embedded import Store, open_database, open_redis
from parley.embedded.ports import free_port
from parley.probe import STALE_AFTER_S, ask_server, read_heartbeat
from parley.roles import Role, Seat, command_of
from tests.integration.chaos.fleet import ROOT, wait_until
from tests.integration.depot import DEPOT
from tests.processes.forked import ForkedProcess, start

ROLES = (Role.GATEWAY, Role.TURNS, Role.SUBMISSIONS, Role.INTERNAL, Role.BEAT)
STANDS_BACK = 3
SCRAPE_TIMEOUT_S = 10
"""Default scrape timeout of Prometheus, in seconds."""


@dataclass
class System:
    """A process of each role over stores that can be stopped. The schema is missing at first."""

    redis: Store
    database: Store
    folder: Path
    port: int = field(default_factory=free_port)
    processes: dict[Role, ForkedProcess] = field(default_factory=dict)

    def start(self, role: Role) -> ForkedProcess:
        process = start(
            command_of(role, Seat(port=self.port)),
            environment={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "DATABASE_URL": self.database.url,
                "REDIS_URL": self.redis.url,
                "PARLEY_HEARTBEAT_FILE": str(self.heartbeat(role)),
                "PARLEY_DOMAIN": str(DEPOT),
                "PARLEY_SHUTDOWN_GRACE_S": "1",
                "PARLEY_BACKGROUND_NICE": str(STANDS_BACK),
            },
            log=self.folder / f"{role.value}.log",
        )
        self.processes[role] = process
        return process

    def heartbeat(self, role: Role) -> Path:
        return self.folder / f"{role.value}.heartbeat"

    def says(self, role: Role, *, live: bool = False) -> str:
        """Return the output of a container's probe. Problems begin with `not`."""
        try:
            if role is Role.GATEWAY:
                return ask_server(f"http://127.0.0.1:{self.port}/health/{'live' if live else 'ready'}")
            return read_heartbeat(self.heartbeat(role), live=live, now=time.time())
        except Unavailable as error:
            return f"not well: {error}"

    def ready(self, *roles: Role) -> bool:
        return not any(self.says(role).startswith("not") for role in roles)

    def live(self, *roles: Role) -> bool:
        return not any(self.says(role, live=True).startswith("not") for role in roles)

    def eventually(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, within_s=120, what=f"{what}; see {self.folder}", look_every_s=0.25)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    folder = tmp_path_factory.mktemp("health")
    (folder / "stores").mkdir()
    with ExitStack() as stack:
        redis = stack.enter_context(open_redis(folder / "stores", durable=True))
        database = stack.enter_context(open_database(folder / "stores", durable=False))
        system = System(redis, database, folder)
        for role in ROLES:
            process = system.start(role)
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield system


def restart(store: Store) -> None:
    store.child.start()
    store.child.await_ready()


def test_without_the_schema_nobody_is_ready_until_it_is_there(system: System) -> None:
    system.eventually(lambda: system.live(*ROLES), "all are live")
    assert not any(system.ready(role) for role in ROLES)
    assert "run `parley migrate`" in system.says(Role.GATEWAY)
    migrate(system.database.url)
    system.eventually(lambda: system.ready(*ROLES), "all are ready once the schema is there")


def test_who_runs_no_turns_stands_back_as_far_as_is_set(ready: System) -> None:
    stands = {role: psutil.Process(ready.processes[role].pid).nice() for role in (Role.TURNS, Role.INTERNAL)}
    assert stands[Role.INTERNAL] == min(stands[Role.TURNS] + STANDS_BACK, 19)


@pytest.fixture
def ready(system: System) -> System:
    """Start all roles, regardless of earlier tests."""
    migrate(system.database.url)
    system.eventually(lambda: system.ready(*ROLES), "all are ready")
    return system


def test_without_postgresql_all_live_and_nobody_is_ready(ready: System) -> None:
    ready.database.child.stop()
    ready.eventually(lambda: not any(ready.ready(role) for role in ROLES), "nobody is ready")
    assert ready.live(*ROLES)
    assert "postgresql" in ready.says(Role.GATEWAY), "within the time that a probe waits"
    told = httpx.get(f"http://127.0.0.1:{ready.port}/metrics", timeout=SCRAPE_TIMEOUT_S).text
    assert "parley_store_answers 0.0" in told, "else Prometheus would hear nothing of it"
    restart(ready.database)
    ready.eventually(lambda: ready.ready(*ROLES), "all are ready again")


def test_a_database_that_takes_no_writes_is_told(ready: System) -> None:
    """A replica after a failover answers, but can't store turns."""
    name = conninfo_to_dict(ready.database.url)["dbname"]
    with psycopg.connect(ready.database.url, autocommit=True) as owner:
        owner.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        _end_connections(owner)
        ready.eventually(lambda: "read-only" in ready.says(Role.GATEWAY), "the gateway says what is wrong")
        ready.eventually(lambda: not ready.ready(Role.TURNS), "neither are workers ready")
        assert ready.live(*ROLES)

        owner.execute("SET default_transaction_read_only = off")
        owner.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        _end_connections(owner)
    ready.eventually(lambda: ready.ready(*ROLES), "all are ready again")


def test_a_database_without_room_for_locks_is_told(ready: System) -> None:
    """Every write needs a lock while reading works, so only a writing probe detects this."""
    with psycopg.connect(ready.database.url, autocommit=True) as greedy:
        with suppress(psycopg.errors.OutOfMemory):
            for first in range(0, 1_000_000, 500):
                greedy.execute(
                    f"SELECT pg_try_advisory_lock(g) FROM generate_series({first}, {first + 499}) AS g"
                )
        ready.eventually(lambda: "postgresql" in ready.says(Role.GATEWAY), "the gateway is not ready")
    ready.eventually(lambda: ready.ready(*ROLES), "all are ready again")


def _end_connections(owner: psycopg.Connection[Any]) -> None:
    owner.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_without_redis_jobs_are_fired_all_the_same(ready: System) -> None:
    waiting = (Role.GATEWAY, Role.TURNS, Role.SUBMISSIONS, Role.INTERNAL)
    ready.redis.child.stop()
    ready.eventually(lambda: not any(ready.ready(role) for role in waiting), "who needs it is not ready")
    assert ready.live(*ROLES)
    assert ready.ready(Role.BEAT)
    assert "redis" in ready.says(Role.GATEWAY)
    restart(ready.redis)
    ready.eventually(lambda: ready.ready(*ROLES), "all are ready again")


def stands_still(process: ForkedProcess) -> bool:
    """Return whether all threads of the process are stopped."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/stat")
    return {thread.read_text().rpartition(")")[2].split()[0] for thread in threads} == {"T"}


def test_a_process_that_hangs_is_not_live(ready: System) -> None:
    """Only while the process hangs, because a probe would restart it."""
    for process in ready.processes.values():
        process.send_signal(signal.SIGSTOP)
    # A process that still writes its file would count as live until the file is stale.
    ready.eventually(lambda: all(map(stands_still, ready.processes.values())), "all stand still")
    written_last = time.time() - STALE_AFTER_S
    for role in set(ROLES) - {Role.GATEWAY}:  # as if this much time had passed
        os.utime(ready.heartbeat(role), (written_last, written_last))
    ready.eventually(lambda: not any(ready.live(role) for role in ROLES), "nobody is live")
    for process in ready.processes.values():
        process.send_signal(signal.SIGCONT)
    ready.eventually(lambda: ready.ready(*ROLES), "all are live and ready again")


def test_an_address_where_nobody_listens_is_not_well() -> None:
    with pytest.raises(Unavailable, match="is not responding"):
        ask_server(f"http://127.0.0.1:{free_port()}/health/live")
