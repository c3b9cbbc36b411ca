"""Workers killed with SIGKILL in the middle of turns, again and again under load (RT-8, RT-11, RT-17)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from orchestrator.adapters.postgres.migrate import migrate
from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.counting import EFFECTS
from tests.integration.chaos.fleet import Fleet, Worker, fleet
from tests.integration.chaos.submitting import all_finished, submitter
from tests.integration.chaos.takeover import Takeovers, percentile

KILL_EVERY_S = 1.5
SETTINGS = {"PARLEY_LEASE_TTL_S": "15", "PARLEY_RUNNER_LINGER_S": "1", "PARLEY_MAX_ATTEMPTS": "50"}


@pytest.fixture
def database(database_url: str) -> str:
    migrate(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute(EFFECTS)
    return database_url


async def test_killed_workers_lose_repeat_and_reorder_nothing(
    database: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _storm(database, redis_url, tmp_path, capsys, sessions=100, turns=10)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_killed_workers_for_long(
    database: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _storm(database, redis_url, tmp_path, capsys, sessions=200, turns=50)


async def _storm(
    database: str,
    redis_url: str,
    logs: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    sessions: int,
    turns: int,
) -> None:
    chance = random.Random(7)
    takeovers = Takeovers(database)
    with fleet(database, redis_url, logs, SETTINGS) as crew:
        crew.start(3)
        async with submitter(database, redis_url) as client:
            submitting = asyncio.create_task(
                client.submit_all([f"storm-{n}" for n in range(sessions)], turns, _text)
            )
            killing = asyncio.create_task(_kill_again_and_again(crew, takeovers, chance))
            await submitting
            await all_finished(database, within_s=60 + sessions * turns / 20)
            killing.cancel()
            await asyncio.gather(killing, return_exceptions=True)
            history = read_history(database, client.accepted)

    times = takeovers.times_s()
    with capsys.disabled():
        print(
            f"\n{sessions} sessions of {turns} turns, {takeovers.kills} kills, {len(times)} turns interrupted;"
            f" until the session's next progress: p50 {percentile(times, 50):.2f} s,"
            f" p99 {percentile(times, 99):.2f} s"
        )
    assert takeovers.kills >= 3
    assert times, "no kill met a running turn, so nothing was shown"
    assert Counter(turn.status for turn in history.turns) == {"done": sessions * turns}
    assert check(history) == []


def _text(number: int) -> str:
    """Turns long enough to be met by a kill; one in five has an effect outside the transaction."""
    return "effect wait 0.8" if number % 5 == 0 else "wait 0.8"


async def _kill_again_and_again(crew: Fleet, takeovers: Takeovers, chance: random.Random) -> None:
    """Kill a worker, start another in its place, wait, repeat."""
    while True:
        await asyncio.sleep(KILL_EVERY_S)
        alive = [worker for worker in crew.workers if worker.process.poll() is None]
        victim: Worker = chance.choice(alive)
        await asyncio.to_thread(takeovers.kill, victim)
        crew.launch()
