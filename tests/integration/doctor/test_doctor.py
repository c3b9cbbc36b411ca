"""`parley doctor` on real stores: each fault is reported with its solution."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis

from orchestrator.adapters.postgres.migrate import HEAD, migrate
from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.worker_registry import RegisteredProcess, WorkerRegistry
from parley.commands.doctor import examine
from parley.diagnosis.finding import Finding
from parley.main import run
from parley.roles import QUEUES, Role
from tests.integration.chaos.fleet import fleet, wait_until

EMPTY_SERVER = "postgresql://127.0.0.1:1/none"


def look(
    folder: Path, environment: Mapping[str, str], *, preflight: bool = False
) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in examine(folder, "travel", environment, preflight=preflight):
        found.setdefault(finding.name, []).append(finding)
    return found


def bad_ones(found: Mapping[str, list[Finding]]) -> dict[str, Finding]:
    return {name: finding for name, group in found.items() for finding in group if finding.fine is False}


@pytest.fixture
def environment(empty_database_url: str, redis_url: str) -> dict[str, str]:
    return {"DATABASE_URL": empty_database_url, "REDIS_URL": redis_url}


@contextmanager
def configured(redis_url: str, name: str, value: str) -> Iterator[None]:
    with redis.Redis.from_url(redis_url) as client:
        before = client.config_get(name)[name]
        client.config_set(name, value)
        try:
            yield
        finally:
            client.config_set(name, before)


async def announce(redis_url: str, *processes: RegisteredProcess) -> None:
    async with connect(redis_url) as client:
        for process in processes:
            await WorkerRegistry(client).announce(process)


def test_a_database_without_our_tables_is_sent_to_migrate(
    environment: dict[str, str], tmp_path: Path
) -> None:
    before = bad_ones(look(tmp_path, environment, preflight=True))
    assert set(before) == {"schema"}
    assert before["schema"].remedy == "run `parley migrate`"

    migrate(environment["DATABASE_URL"])
    assert bad_ones(look(tmp_path, environment, preflight=True)) == {}


def test_a_schema_of_another_release_is_told_apart(environment: dict[str, str], tmp_path: Path) -> None:
    migrate(environment["DATABASE_URL"])
    with psycopg.connect(environment["DATABASE_URL"], autocommit=True) as connection:
        try:
            connection.execute("UPDATE alembic_version SET version_num = '0000'")
            (older,) = look(tmp_path, environment)["schema"]
            connection.execute("UPDATE alembic_version SET version_num = '9999'")
            (newer,) = look(tmp_path, environment)["schema"]
        finally:
            connection.execute("UPDATE alembic_version SET version_num = %s", (HEAD,))
    assert (older.fine, older.remedy) == (False, "run `parley migrate`")
    assert newer.fine is None


def test_stores_that_do_not_answer_are_named_with_what_goes_on_without_them(tmp_path: Path) -> None:
    found = bad_ones(look(tmp_path, {"DATABASE_URL": EMPTY_SERVER, "REDIS_URL": "redis://127.0.0.1:1/0"}))
    assert {"postgres", "redis", "workers"} <= set(found)
    assert "until then, no turns are accepted" in found["postgres"].remedy


def test_a_redis_that_evicts_is_broken_and_one_without_a_log_is_noted(
    environment: dict[str, str], tmp_path: Path
) -> None:
    with configured(environment["REDIS_URL"], "maxmemory-policy", "allkeys-lru"):
        found = look(tmp_path, environment)
    assert bad_ones(found)["redis memory"].remedy == "set `maxmemory-policy noeviction`"
    (log,) = found["redis log"]
    assert (log.fine, log.message) == (None, "appendonly is off")


async def test_each_queue_needs_a_worker_and_schedules_need_a_beat(
    environment: dict[str, str], tmp_path: Path
) -> None:
    migrate(environment["DATABASE_URL"])
    missing = bad_ones(look(tmp_path, environment))
    assert set(missing) == {"beat", *(f"queue {queue}" for queues in QUEUES.values() for queue in queues)}
    assert missing["queue turns"].remedy == "start one: `parley serve turns`"
    assert missing["queue urgent"].remedy == "start one: `parley serve internal`"

    taken = [*QUEUES[Role.TURNS], *QUEUES[Role.SUBMISSIONS]]
    await announce(environment["REDIS_URL"], RegisteredProcess.here("worker", taken))
    assert set(bad_ones(look(tmp_path, environment))) == {"queue internal", "queue urgent", "beat"}
    await announce(
        environment["REDIS_URL"],
        RegisteredProcess.here("worker", QUEUES[Role.INTERNAL]),
        RegisteredProcess.here("beat"),
    )
    assert bad_ones(look(tmp_path, environment)) == {}


def test_a_real_worker_is_seen_while_it_lives_and_no_longer(
    environment: dict[str, str], tmp_path: Path
) -> None:
    migrate(environment["DATABASE_URL"])

    def seen() -> bool:
        return all(finding.fine for finding in look(tmp_path, environment)["queue turns"])

    with fleet(environment["DATABASE_URL"], environment["REDIS_URL"], tmp_path) as crew:
        (worker,) = crew.start(1)
        wait_until(seen, within_s=10, what="doctor sees the worker")
        assert worker.stop() in {0, -signal.SIGTERM}
        wait_until(lambda: not seen(), within_s=20, what="doctor sees the worker no more")


def test_open_stores_and_known_passwords_are_faults(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLEY_LEASE_TTL_S", "soon")
    careless = {
        **environment,
        "PARLEY_HOST": "0.0.0.0",
        "PARLEY_REMOTE_CONTROL": "true",
        "PARLEY_BROKER_URL": "amqp://guest:guest@broker.invalid//",
    }
    found = bad_ones(look(tmp_path, careless, preflight=True))
    assert {"gateway host", "remote control", "settings", "passwords", "broker"} <= set(found)
    assert "PARLEY_LEASE_TTL_S" in found["settings"].message
    assert all(finding.remedy for finding in found.values())
    assert "guest:guest" not in " ".join(finding.message for finding in found.values())


def test_the_command_prints_one_line_each_and_fails_when_something_is_wrong(
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    migrate(environment["DATABASE_URL"])
    for name in [*os.environ]:
        if name.startswith(("PARLEY_", "OPENAI_")):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run(["doctor", "--preflight", "--data-dir", str(tmp_path)]) == 0
    assert "BAD" not in capsys.readouterr().out
    assert run(["doctor", "--json", "--data-dir", str(tmp_path)]) == 1
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {finding["state"] for finding in findings} == {"ok", "note", "bad"}
    assert all(finding["remedy"] for finding in findings if finding["state"] == "bad")
