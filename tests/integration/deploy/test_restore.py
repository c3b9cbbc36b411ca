"""Backup and restore as described in docs/maintain.md: conversations continue, and nothing is done twice."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import psycopg
import pytest
import redis
from psycopg.conninfo import conninfo_to_dict

from orchestrator.adapters.postgres.migrate import migrate
from parley.embedded.postgres import find_binaries
from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.fleet import fleet
from tests.integration.chaos.processes.counting import EFFECTS
from tests.integration.chaos.submitting import all_finished, submitter
from tests.processes.forked import ROOT

SESSIONS = ("ada", "bob", "cyd")


def documented(program: str) -> list[str]:
    """Return the page's command, as it runs inside the database container."""
    (line,) = re.findall(
        rf"^docker compose exec (?:--no-TTY )?postgres ({program} [^<>\n]+)",
        (ROOT / "docs" / "maintain.md").read_text(),
        flags=re.MULTILINE,
    )
    return shlex.split(line)


def run_on(database_url: str, command: list[str], *, stdin: bytes | None = None) -> bytes:
    """Run a documented command against the test's own database, with this server's programs."""
    given = conninfo_to_dict(database_url)
    place = {"PGHOST": given["host"], "PGPORT": given["port"], "PGPASSWORD": given["password"]}
    named = [re.sub(r"^(--dbname=|)parley$", rf"\g<1>{given['dbname']}", word) for word in command[1:]]
    return subprocess.run(
        [find_binaries(None) / command[0], *named],
        input=stdin,
        env={**os.environ, **{name: str(value) for name, value in place.items()}},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def replace_database(database_url: str) -> None:
    """Replace the lost server with a new server."""
    base, _, name = database_url.rpartition("/")
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    migrate(database_url)


@pytest.mark.parametrize("redis_is_lost", [True, pytest.param(False, marks=pytest.mark.slow)])
async def test_conversations_go_on_from_a_backup(
    redis_is_lost: bool, database_url: str, redis_url: str, tmp_path: Path
) -> None:
    replace_database(database_url)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(EFFECTS)
    with fleet(database_url, redis_url, tmp_path) as crew:
        crew.start(1)
        async with submitter(database_url, redis_url) as client:
            for session in SESSIONS:
                await client.finished(await client.submit(session, "one effect"))
            crew.workers[0].stop()
            waiting = {session: await client.submit(session, "two effect") for session in SESSIONS}
            kept = set(client.accepted)
            backup = run_on(database_url, documented("pg_dump"))
            lost = {session: await client.submit(session, "three effect") for session in SESSIONS}
        crew.start(1)
        await all_finished(database_url, within_s=60)
        crew.workers[1].stop()

        replace_database(database_url)
        run_on(database_url, documented("pg_restore"), stdin=backup)
        if redis_is_lost:
            with redis.Redis.from_url(redis_url) as connection:
                connection.flushdb()

        crew.start(1)
        await all_finished(database_url, within_s=60)
        async with submitter(database_url, redis_url) as client:
            for session in SESSIONS:
                record = await client.finished(await client.submit(session, "another effect"))
                assert record.result is not None
                assert record.result["count"] == 3, "the first, the one that waited, and this one"
            kept |= client.accepted

    history = read_history(database_url, kept)
    assert check(history) == []
    turns = {turn.turn_id for turn in history.turns}
    assert turns == kept
    assert {receipt.turn_id for receipt in waiting.values()} <= turns
    assert not {receipt.turn_id for receipt in lost.values()} & turns
    assert set(history.effects.values()) == {1}
    assert set(history.effects) == kept
