"""Workers killed with SIGKILL during turns, repeatedly under load (RT-8, RT-11, RT-17)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.submitting import all_finished, count_unfinished, submitter
from tests.integration.chaos.takeover import ANY, LOADED, QUIET, Machine, Takeovers, describe, percentile
from tests.integration.chaos.worker_pool import WorkerPool, worker_pool

WORKERS = 3
LOOK_EVERY_S = 0.05
IDLE_FOR_S = 2.0


@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(
    ("sessions", "kills", "machine"),
    [
        pytest.param(40, 6, ANY, marks=pytest.mark.slow),
        pytest.param(200, 100, QUIET, marks=pytest.mark.slow),
        pytest.param(200, 100, LOADED, marks=pytest.mark.slow),
    ],
    ids=["short", "quiet", "loaded"],
)
async def test_killed_workers_lose_repeat_and_reorder_nothing(
    database: str,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    sessions: int,
    kills: int,
    machine: Machine,
) -> None:
    """Kill the required number of busy workers, and submit turns until the kills are over."""
    takeovers = Takeovers(database)
    takeovers.prepare()
    names = [f"storm-{number}" for number in range(sessions)]
    with worker_pool(database, redis_url, tmp_path, **machine.settings) as pool, machine.load():
        for _ in range(WORKERS):
            pool.begin()
        async with submitter(database, redis_url) as client:
            killing = asyncio.create_task(_kill_again_and_again(pool, takeovers, kills))
            while not killing.done():
                await client.submit_all(names, 2, _text)
                await _until(lambda: killing.done() or count_unfinished(database) <= sessions)
            await killing
            await all_finished(database, within_s=300)
            history = read_history(database, client.accepted)

    recoveries, interrupted = takeovers.recoveries(), len(takeovers.unfinished())
    with capsys.disabled():
        print(
            f"\n{len(history.turns)} turns of {sessions} sessions, {takeovers.kills} kills,"
            f" {interrupted} interruptions; {describe(recoveries)}"
        )
    assert recoveries, "no kill met a running turn, so nothing was shown"
    assert len(recoveries) == interrupted
    assert Counter(turn.status for turn in history.turns) == {"done": len(client.accepted)}
    assert check(history) == []
    assert percentile([recovery.seconds for recovery in recoveries], 99) <= machine.bar_s


def _text(number: int) -> str:
    """Return texts of turns long enough to be killed; every second has an effect outside the transaction."""
    return "effect wait 0.8" if number % 2 == 0 else "wait 0.8"


async def _choose_at_work(pool: WorkerPool, takeovers: Takeovers, chance: random.Random) -> psutil.Process:
    """Choose a worker with running turns. Don't wait for a worker that is idle for a while."""
    while True:
        victim = chance.choice(pool.ready())
        with suppress(TimeoutError):
            async with asyncio.timeout(IDLE_FOR_S):
                await _until(lambda victim=victim: takeovers.is_at_work(victim))
                return victim


async def _kill_again_and_again(pool: WorkerPool, takeovers: Takeovers, kills: int) -> None:
    """Repeatedly kill a busy worker, start a replacement, and wait until it is ready.

    There is no fixed pace, because on a busy machine workers start slowly.
    """
    chance = random.Random(7)
    while takeovers.kills < kills:
        await _until(lambda: len(pool.ready()) == WORKERS)
        victim = await _choose_at_work(pool, takeovers, chance)
        pool.forget(victim)
        await asyncio.to_thread(takeovers.kill, victim)
        pool.begin()


async def _until(condition: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(condition):
        await asyncio.sleep(LOOK_EVERY_S)
