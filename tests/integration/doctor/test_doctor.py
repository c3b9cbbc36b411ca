"""`parley doctor` on real stores: each fault is reported with its solution."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest

from orchestrator.adapters.postgres.migrate import HEAD, migrate
from parley.commands.doctor import examine
from parley.diagnosis.finding import Finding
from parley.main import run
from tests.integration.chaos.fleet import fleet, wait_until


def look(
    folder: Path, environment: Mapping[str, str], *, preflight: bool = False
) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in examine(folder, "travel", environment, preflight=preflight):
        found.setdefault(finding.name, []).append(finding)
    return found


@pytest.fixture
def environment(empty_database_url: str, redis_url: str) -> dict[str, str]:
    return {"DATABASE_URL": empty_database_url, "REDIS_URL": redis_url}


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
