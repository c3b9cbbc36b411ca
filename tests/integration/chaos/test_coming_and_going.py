"""Workers that start and stop every second under load, like under a scaler: no turn is lost (RT-17, RT-18,
RT-21).
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import Any, LiteralString

import pytest

from parley.processes import has_ended
from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.fleet import STAND_IN, wait_until
from tests.integration.chaos.submitting import Submitter, submitter
from tests.integration.chaos.worker_pool import WorkerPool, worker_pool
from tests.processes.rows import read_rows

EVERY_S = 1.0
TIDES = (2, 3, 1, 2, 4, 2, 3, 1)
"""Number of workers in each second."""
LANES = 8
SESSIONS = 40
"""More than the lanes of all workers together, so that new workers have something to do."""
WITHIN_S = 60
LEASE_S = 600
"""Longer than any test: no turn changes workers because of an expired lease."""
STEPS = 8
ENDINGS = 100
UNDRAINED = "tests.integration.chaos.processes.undrained"

WORKING = "SELECT count(*) FROM lanes WHERE lease_owner IS NOT NULL"
CRASHED = "SELECT count(*) FROM turns WHERE crashes > 0"
REPEATED = "SELECT count(*) FROM turns WHERE crashes > 0 OR attempts > 1"
STEPS_DONE = "SELECT count(*) FROM turns WHERE session_id = 'steps' AND finished_at IS NOT NULL"
RESULTS = "SELECT result FROM turns WHERE result IS NOT NULL"
LAST_RESULTS = f"{RESULTS} ORDER BY finished_at DESC LIMIT 100"
STEPS_BY = "SELECT result FROM turns WHERE session_id = 'steps' ORDER BY seq"
LONG_BY = "SELECT result FROM turns WHERE session_id = 'long' AND attempts = 1"


@pytest.mark.slow
async def test_no_turn_is_lost_while_workers_come_and_go(
    database: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under constant load, stop workers gracefully first, then kill some as well."""
    settings = {
        "PARLEY_MAX_ATTEMPTS": "50",
        "PARLEY_RUNNER_LINGER_S": "1",
        "PARLEY_LANES_PER_PROCESS": str(LANES),
        "PARLEY_LEASE_TTL_S": str(LEASE_S),
    }
    ended: Counter[str] = Counter()
    with worker_pool(database, redis_url, tmp_path, **settings) as pool:
        async with submitter(database, redis_url) as client, _load(client):
            await _turn_the_tide(database, pool, cycle([signal.SIGTERM]), ended, ENDINGS // 2)
            repeated_in_peace = await _read(database, REPEATED)
            both = cycle([signal.SIGKILL, signal.SIGTERM])
            await _turn_the_tide(database, pool, both, ended, ENDINGS)
        history = read_history(database, client.accepted)
    shares, repeated = set(await _pids(database, RESULTS)), await _read(database, CRASHED)
    with capsys.disabled():
        print(f"\n{len(client.accepted)} turns by {len(shares)} workers; ended meanwhile: {dict(ended)}")
    assert ended["SIGTERM"] > ended["SIGKILL"] >= ENDINGS // 4
    assert repeated_in_peace == [(0,)], "a worker that leaves in peace finishes what it has begun"
    assert repeated != [(0,)], "no kill met a running turn, so nothing was shown"
    assert Counter(turn.status for turn in history.turns) == {"done": len(client.accepted)}
    assert check(history) == []


@asynccontextmanager
async def _load(client: Submitter) -> AsyncIterator[None]:
    """Keep sessions talking: each sends the next message after the last answer, until the block ends."""
    stopping = asyncio.Event()

    async def talk(session: str) -> None:
        number = 0
        while not stopping.is_set():
            said = "effect wait 0.4" if number % 4 == 0 else "wait 0.4"
            receipt = await client.submit(session, f"{number} {said}")
            await client.finished(receipt, within_s=WITHIN_S)
            number += 1

    async with asyncio.TaskGroup() as talking:
        for number in range(SESSIONS):
            talking.create_task(talk(f"go-{number}"))
        try:
            yield
        finally:
            stopping.set()


async def _turn_the_tide(
    database: str, pool: WorkerPool, endings: Iterator[signal.Signals], ended: Counter[str], until: int
) -> None:
    """Start or stop workers each second, and wait until each has run a turn."""
    for wanted in cycle(TIDES):
        while len(pool.alive) < wanted:
            await asyncio.to_thread(pool.begin)
        await _wait(lambda wanted=wanted: len(pool.ready()) >= wanted, "the workers are ready")
        while len(pool.alive) > wanted:
            oldest = pool.ready()[0]
            await _wait(lambda pid=oldest.pid: _has_share(database, pid), "the worker takes part")
            ending = next(endings)
            pool.end(oldest, ending)
            ended[ending.name] += 1
        if ended.total() >= until:
            return
        await asyncio.sleep(EVERY_S)


def _has_share(database: str, pid: int) -> bool:
    return pid in _pids_now(database, LAST_RESULTS)


async def test_who_leaves_hands_over_at_once(database: str, redis_url: str, tmp_path: Path) -> None:
    """RT-18: the worker finishes its current turn; waiting sessions continue elsewhere meanwhile."""
    leaver, other, steps_by = await _leave_in_the_middle(database, redis_url, tmp_path, STAND_IN)
    assert set(steps_by) == {leaver, other}, "the session began with the one and went on with the other"
    assert steps_by == sorted(steps_by, key=[leaver, other].index), "and it moved only once"


async def test_a_worker_that_does_not_hand_over_is_found_out(
    database: str, redis_url: str, tmp_path: Path
) -> None:
    """If lanes are not released on shutdown, the stopping worker keeps its session until no turn waits."""
    leaver, _, steps_by = await _leave_in_the_middle(database, redis_url, tmp_path, UNDRAINED)
    assert set(steps_by) == {leaver}


async def _leave_in_the_middle(
    database: str, redis_url: str, logs: Path, application: str
) -> tuple[int, int, list[int]]:
    """Stop a worker with a long turn and a session with many short turns.

    Return the stopped worker, the remaining worker, and the workers of the short turns. The long turn ends
    after the short turns, and the lease would last ten minutes.
    """
    may_go_on, may_end = logs / "may_go_on", logs / "may_end"
    settings = {"PARLEY_LEASE_TTL_S": str(LEASE_S), "PARLEY_SHUTDOWN_GRACE_S": "120"}
    with worker_pool(database, redis_url, logs, application=application, **settings) as pool:
        async with submitter(database, redis_url) as client:
            leaver = await asyncio.to_thread(pool.begin)
            await client.submit("long", f"until {may_end}")
            await client.submit("steps", f"until {may_go_on}")
            await client.submit_all(["steps"], STEPS - 1, lambda _: "wait 0.4")
            await _wait(lambda: read_rows(database, WORKING) == [(2,)], "the leaver is at work")
            other = await asyncio.to_thread(pool.begin)
            await _wait(lambda: other in pool.ready(), "another is there")
            pool.end(leaver, signal.SIGTERM)
            may_go_on.touch()
            await _wait(lambda: read_rows(database, STEPS_DONE) == [(STEPS,)], "the short turns are done")
            assert not has_ended(leaver), "it still has its long turn"
            may_end.touch()
            await _wait(lambda: has_ended(leaver), "the leaver has ended its long turn and itself")
            assert await _pids(database, LONG_BY) == [leaver.pid], "nobody had to begin it again"
    return leaver.pid, other.pid, await _pids(database, STEPS_BY)


async def test_what_runs_side_by_side_follows_the_workers(
    database: str, redis_url: str, tmp_path: Path
) -> None:
    """The throughput is the sum of all workers' lanes, after each start and stop.

    The test counts concurrent turns instead of measuring time. `make bench-workers` reports turns per second.
    """
    settings = {
        "PARLEY_LANES_PER_PROCESS": str(LANES),
        "PARLEY_SHUTDOWN_GRACE_S": "0",
        "PARLEY_LEASE_TTL_S": str(LEASE_S),
        "PARLEY_TURN_DEADLINE_S": str(LEASE_S),  # so that all can start first
    }
    with worker_pool(database, redis_url, tmp_path, **settings) as pool:
        async with submitter(database, redis_url) as client:
            waiting = [f"wide-{number}" for number in range(4 * LANES)]
            await client.submit_all(waiting, 1, lambda _: "wait 600")
            for _ in range(3):
                await asyncio.to_thread(pool.begin)
                await _until_at_work(database, pool)
            for ending in (signal.SIGTERM, signal.SIGKILL):
                pool.end(pool.alive[0][0], ending)
                await _until_at_work(database, pool)
            for worker, _ in pool.alive:
                worker.kill()


async def _until_at_work(database: str, pool: WorkerPool) -> None:
    expected = LANES * len(pool.alive)
    what = f"{expected} sessions are at work"
    await _wait(lambda: read_rows(database, WORKING) == [(expected,)], what)


async def _wait(condition: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(wait_until, condition, within_s=WITHIN_S, what=what)


async def _read(database: str, query: LiteralString) -> list[tuple[Any, ...]]:
    return await asyncio.to_thread(read_rows, database, query)


async def _pids(database: str, query: LiteralString) -> list[int]:
    return await asyncio.to_thread(_pids_now, database, query)


def _pids_now(database: str, query: LiteralString) -> list[int]:
    """Return the process IDs in results."""
    return [result["pid"] for (result,) in read_rows(database, query)]
