"""`parley doctor` on a deployment with one fault: it reports the fault and the solution, and fails."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.roles import RUNTIME, make_login, make_roles
from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.worker_registry import RegisteredProcess, WorkerRegistry
from parley.diagnosis import database, surroundings
from parley.main import run
from parley.roles import QUEUES, Role
from parley.stack import TRAINED_FOLDER
from tests.cases import for_each
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.chaos.submitting import submitter
from tests.integration.doctor import breakages
from tests.integration.doctor.breakages import ELSEWHERE, NOBODY, Break, Deployment, told

TOKENS = {"PARLEY_JWT_AUDIENCE": "parley", "PARLEY_JWT_ISSUER": "https://issuer.example.com"}
WORKERS = {"queue turns", "queue submissions", "queue internal", "queue urgent"}

BREAKAGES: dict[str, tuple[Break, set[str], str]] = {
    "no Redis": (told(REDIS_URL=f"redis://{NOBODY}/0"), {"redis", "workers"}, "start Redis, or correct REDIS_URL"),
    "a wrong password of Redis": (
        breakages.account_of_redis("~* +@all", "wrong-password"), {"redis", "workers"}, "correct REDIS_URL",
    ),
    "a Redis account without rights": (
        breakages.account_of_redis("~* +ping"), {"redis", "workers"}, "correct REDIS_URL",
    ),
    "a Redis that evicts": (
        breakages.configured_redis("maxmemory-policy", "allkeys-lru"),
        {"redis memory"},
        "set `maxmemory-policy noeviction`",
    ),
    "a Redis that is nearly full": (breakages.full_redis, {"redis memory"}, "raise maxmemory"),
    "a Redis that is a replica": (breakages.replica_redis, {"redis writes"}, "point REDIS_URL at the primary"),
    "no PostgreSQL": (
        told(DATABASE_URL=f"postgresql://parley:password@{NOBODY}/parley"),
        {"postgres"},
        "start PostgreSQL, or correct DATABASE_URL",
    ),
    "a wrong password of PostgreSQL": (breakages.wrong_password, {"postgres"}, "correct DATABASE_URL"),
    "a user without rights": (breakages.user_without_rights, {"rights"}, "parley migrate --login runtime=FILE"),
    "a user who may not act as session flows": (
        breakages.user_who_may_not_act_as_session_flows, {"session flows"}, "GRANT parley_session_flows TO older_",
    ),
    "a user whom no policy binds": (
        breakages.owner_where_tenants_are_guarded, {"tenants"}, "parley migrate --login=runtime=FILE",
    ),
    "a database that only reads": (breakages.read_only_database, {"postgres writes"}, "at the primary"),
    "a database without tables": (breakages.empty_database, {"schema"}, "run `parley migrate`"),
    "an older schema": (breakages.older_schema, {"schema"}, "run `parley migrate`"),
    "a clock ahead": (breakages.fast_clock, {"postgres clock"}, "synchronize both machines"),
    "no workers": (breakages.nobody_of("worker"), WORKERS, "`parley serve "),
    "no beat": (breakages.nobody_of("beat"), {"beat"}, "start one: `parley serve beat`"),
    "no gateway": (told(PARLEY_URL=f"http://{NOBODY}"), {"gateway"}, "start the gateway (`parley serve gateway`)"),
    "a gateway open to all": (told(PARLEY_HOST="0.0.0.0"), {"gateway host"}, "set PARLEY_AUTH=required"),
    "remote control": (told(PARLEY_REMOTE_CONTROL="true"), {"remote control"}, "unset PARLEY_REMOTE_CONTROL"),
    "no broker": (
        told(PARLEY_BROKER_URL=f"amqp://parley:password@{ELSEWHERE}:1//"), {"broker"}, "start the broker",
    ),
    "a known password": (
        told(PARLEY_BROKER_URL=f"amqp://guest:guest@{ELSEWHERE}:1//"),
        {"broker", "passwords"},
        "create a separate account",
    ),
    "a short secret for tokens": (told(PARLEY_JWT_KEY="short", **TOKENS), {"tokens"}, "correct the setting"),
    "tokens meant for anybody": (told(PARLEY_JWT_KEY="k" * 32), {"tokens"}, "correct the setting"),
    "a setting that is no number": (told(PARLEY_LEASE_TTL_S="soon"), {"settings"}, "unset it for the default"),
    "no model": (told(OPENAI_BASE_URL=f"http://{NOBODY}/v1"), {"model"}, "check the URL"),
    "a model's key that is refused": (breakages.endpoint_that_refuses, {"model"}, "put a valid key"),
    "Flower open to all": (breakages.open_flower, {"flower"}, "set FLOWER_BASIC_AUTH"),
    "half a password of Flower": (told(FLOWER_BASIC_AUTH="parley"), {"flower"}, "set a user name and a password"),
    "no domain": (told(PARLEY_DOMAIN="/nowhere/at-all"), {"domain"}, "choose another domain"),
    "no folder for the heartbeat": (told(PARLEY_HEARTBEAT_FILE="/nowhere/beat"), {"folders"}, "mount a writable /tmp"),
}  # fmt: skip


@pytest.fixture(scope="module")
def login_url(database_url: str) -> Iterator[str]:
    """Create a login with the rights of worker processes."""
    migrate(database_url)
    make_roles(database_url)
    user = f"doctor_{uuid4().hex[:8]}"
    url = f"postgresql://{user}:{uuid4().hex}@{database_url.rpartition('@')[2]}"
    make_login(database_url, url, RUNTIME)
    yield url
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {user}")
        connection.execute(f"DROP ROLE {user}")


@pytest.fixture
async def deployment(
    database_url: str, login_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> Deployment:
    """Yield a complete deployment: stores, schema, and processes for every queue and the schedule."""
    for name in [*os.environ]:
        if name.startswith(("PARLEY_", "OPENAI_", "FLOWER_")) and name != TRAINED_FOLDER:
            monkeypatch.delenv(name)
    async with connect(redis_url) as client:
        board = WorkerRegistry(client)
        for role in (Role.TURNS, Role.SUBMISSIONS, Role.INTERNAL):
            await board.announce(RegisteredProcess.here("worker", QUEUES[role]))
        await board.announce(RegisteredProcess.here("beat"))
    return Deployment({"DATABASE_URL": login_url, "REDIS_URL": redis_url}, database_url)


Diagnose = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def diagnose(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Diagnose:
    """Return the command as a function that returns its findings. It must fail if one is bad."""

    def findings() -> list[dict[str, Any]]:
        for name, value in deployment.environment.items():
            monkeypatch.setenv(name, value)
        code = run(["doctor", "--json", "--data-dir", str(tmp_path)])
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert code == bool(of_state(found, "bad"))
        return found

    return findings


def of_state(findings: list[dict[str, Any]], state: str) -> list[dict[str, Any]]:
    return [finding for finding in findings if finding["state"] == state]


def test_nothing_is_wrong_with_one_that_is_whole(diagnose: Diagnose) -> None:
    """The reference for all cases below."""
    assert of_state(diagnose(), "bad") == []


@pytest.mark.parametrize("what", BREAKAGES)
def test_what_is_broken_is_named_with_what_to_do(
    what: str, deployment: Deployment, diagnose: Diagnose
) -> None:
    breaking, names, remedy = BREAKAGES[what]
    with breaking(deployment):
        findings = diagnose()
    found = of_state(findings, "bad")
    assert {finding["name"] for finding in found} == names, found
    assert any(remedy in finding["remedy"] for finding in found), found
    assert all(finding["remedy"] for finding in found)
    said = json.dumps(findings)
    for secret in ("password@", "right-password", "wrong-password", "newcomer-password", "expired-key"):
        assert secret not in said


def test_a_server_that_is_too_old_is_sent_to_a_newer_one(
    diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an old server at hand, the minimum version is raised above this server's."""
    monkeypatch.setattr(database, "OLDEST_VERSION", 99)
    (found,) = of_state(diagnose(), "bad")
    assert (found["name"], found["remedy"]) == ("postgres", "upgrade to PostgreSQL 99 or newer")


def test_a_disk_that_is_nearly_full_is_told_where_stores_are_embedded(
    deployment: Deployment, diagnose: Diagnose, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The minimum free disk space is raised above the actual free space."""
    deployment.environment.clear()
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(surroundings, "_FREE_BYTES", 1 << 62)
    (found,) = of_state(diagnose(), "bad")
    assert found["name"] == "data folder"
    assert found["remedy"].startswith("free disk space")


@for_each(
    ("breaking", "name", "message", "remedy"),
    [
        (breakages.no_pgvector, "postgres", "without pgvector", "install the extension"),
        (breakages.newer_schema, "schema", "newer", "newer"),
    ],
)
def test_what_does_less_is_noted(
    breaking: Break, name: str, message: str, remedy: str, deployment: Deployment, diagnose: Diagnose
) -> None:
    with breaking(deployment):
        findings = diagnose()
    (noted,) = [finding for finding in of_state(findings, "note") if finding["name"] == name]
    assert message in noted["message"]
    assert remedy in noted["remedy"]
    assert of_state(findings, "bad") == []


async def test_sessions_that_nobody_takes_up_are_told(deployment: Deployment, diagnose: Diagnose) -> None:
    async with submitter(deployment.owner_url, deployment.environment["REDIS_URL"]) as client:
        await client.submit("left-alone", "say", hint=False)
    deployment.sql("UPDATE turns SET accepted_at = accepted_at - interval '2 minutes'")
    try:
        (found,) = of_state(diagnose(), "bad")
    finally:
        deployment.sql("TRUNCATE turns, lanes CASCADE")
    assert found["name"] == "lanes"
    assert "start more workers" in found["remedy"]


def test_a_real_worker_is_seen_while_it_lives_and_no_longer(
    deployment: Deployment, diagnose: Diagnose, tmp_path: Path
) -> None:
    def seen() -> bool:
        return not any(finding["name"] == "queue turns" for finding in of_state(diagnose(), "bad"))

    with (
        breakages.nobody_of("worker")(deployment),
        fleet(deployment.owner_url, deployment.environment["REDIS_URL"], tmp_path) as crew,
    ):
        assert not seen()
        (worker,) = crew.start(1)
        wait_until(seen, within_s=10, what="doctor sees the worker")
        assert worker.stop() in {0, -signal.SIGTERM}
        wait_until(lambda: not seen(), within_s=20, what="doctor sees the worker no more")


def test_before_a_start_only_what_must_run_by_then_is_wrong(
    deployment: Deployment, diagnose: Diagnose, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with breakages.nobody_of("worker", "beat")(deployment):
        assert of_state(diagnose(), "bad")
        assert run(["doctor", "--preflight", "--data-dir", str(tmp_path)]) == 0
    assert "BAD" not in capsys.readouterr().out


def test_a_secret_whose_file_is_missing_is_named(
    deployment: Deployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("DATABASE_URL_FILE", "/nowhere/database_url")
    assert run(["doctor", "--data-dir", str(tmp_path)]) == 1
    assert "DATABASE_URL_FILE: cannot be read" in capsys.readouterr().err
