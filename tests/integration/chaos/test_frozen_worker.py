"""A worker frozen for longer than its lease can't write; without the fence, it does damage (RT-3, RT-17)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from orchestrator.turns.turn import TurnStatus
from tests.integration.chaos.checker import History, check, read_history
from tests.integration.chaos.fleet import STAND_IN, Fleet, Worker, fleet, wait_until
from tests.integration.chaos.submitting import Submitter, all_finished, submitter
from tests.processes.rows import read_rows

LEASE_S = 1.0
SETTINGS = {"PARLEY_LEASE_TTL_S": str(LEASE_S), "PARLEY_RUNNER_LINGER_S": "1"}
FENCED = "Another worker took over a session lane"
UNFINISHED = "ended as"
SESSIONS = 10
TURNS = 4


@pytest.fixture
def database(database_url: str) -> str:
    with psycopg.connect(database_url) as connection:
        ((tables,),) = connection.execute(
            "SELECT string_agg(tablename, ', ') FROM pg_tables WHERE schemaname = 'public'"
            " AND tablename NOT IN ('alembic_version', 'guarded_tables')"
        ).fetchall()
        connection.execute(f"TRUNCATE {tables}".encode())
    return database_url


async def test_a_frozen_worker_is_fenced(database: str, redis_url: str, tmp_path: Path) -> None:
    with fleet(database, redis_url, tmp_path, SETTINGS) as crew:
        async with submitter(database, redis_url) as client:
            frozen = await _freeze_one_of_two(crew, client, STAND_IN)
            await all_finished(database, within_s=40)
            await _until(lambda: FENCED in frozen.log.read_text(), "the thawed worker has tried to commit")
            history = read_history(database, client.accepted)

    assert check(history) == []
    assert {turn.status for turn in history.turns} == {"done"}


async def test_without_the_fence_the_checker_finds_damage(
    database: str, redis_url: str, tmp_path: Path
) -> None:
    """The fence makes the difference: the same run without its SQL condition fails."""
    with fleet(database, redis_url, tmp_path, SETTINGS) as crew:
        async with submitter(database, redis_url) as client:
            await _freeze_one_of_two(crew, client, "tests.integration.chaos.processes.unfenced")

            def find_damage() -> list[str]:
                return [
                    breach
                    for breach in check(read_history(database, client.accepted))
                    if UNFINISHED not in breach
                ]

            await _until(find_damage, "the checker finds damage")


async def _freeze_one_of_two(crew: Fleet, client: Submitter, application: str) -> Worker:
    """Freeze a worker during turns until another has continued them, then unfreeze it."""
    database = crew.database_url
    (frozen,) = crew.start(application=application)
    await client.submit_all([f"frozen-{n}" for n in range(SESSIONS)], TURNS, lambda _: "wait 0.4")
    await _until(lambda: _running(database) == SESSIONS, "every session has a turn running")
    frozen.freeze()
    held = _last_tokens(database, [TurnStatus.RUNNING])
    assert held, "the worker was frozen after its last turn"
    await asyncio.to_thread(crew.start, application=application)
    await _until(
        lambda: _taken_over(database, held), "every session that the frozen worker held was taken over"
    )
    assert check(_without_unfinished(read_history(database, client.accepted))) == []
    frozen.thaw()
    return frozen


def _without_unfinished(history: History) -> History:
    """Return the committed turns so far. There must be no damage before the frozen worker wakes up."""
    committed = {
        name: replace(session, turns=[turn for turn in session.turns if turn.epoch is not None])
        for name, session in history.sessions.items()
    }
    return replace(history, sessions=committed, accepted=frozenset())


async def _until(condition: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, within_s=30, what=what)


def _running(database: str) -> int:
    ((count,),) = read_rows(database, "SELECT count(*) FROM turns WHERE status = 'running'")
    return count


def _taken_over(database: str, held: Mapping[str, int]) -> bool:
    tokens = _last_tokens(database, TurnStatus)
    return all(tokens[session_id] != token for session_id, token in held.items())


def _last_tokens(database: str, statuses: Iterable[TurnStatus]) -> dict[str, int]:
    """Return the newest committed token (0 before the first) of sessions with a turn in one of `statuses`."""
    rows = read_rows(
        database,
        "SELECT session_id, coalesce((array_agg(token ORDER BY seq DESC) FILTER (WHERE token IS NOT NULL))[1], 0)"
        " FROM turns GROUP BY session_id HAVING bool_or(status = ANY(%s))",
        [list(statuses)],
    )
    return dict(rows)
