"""Turns that crash their workers are quarantined, other turns are not, with default settings (RT-26)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.turns.turn import TurnStatus
from tests.integration.chaos.fleet import fleet, wait_until
from tests.integration.chaos.submitting import submitter
from tests.processes.rows import read_rows

WORKERS = 2
WITHIN_S = 120.0
SUSPECTS = 30


def count(database: str, like: str) -> Counter[str]:
    """Return the statuses of turns whose session ID has this prefix."""
    query = "SELECT status, count(*)::int FROM turns WHERE session_id LIKE %s GROUP BY 1"
    return Counter(dict(read_rows(database, query, (f"{like}%",))))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("neighbors", "poisons"), [(8, 2), pytest.param(480, 20, marks=pytest.mark.slow)], ids=["few", "many"]
)
async def test_neighbours_of_poison_turns_are_answered(
    neighbors: int,
    poisons: int,
    database_url: str,
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()
    innocent, poisonous = f"neighbor-{neighbors}-", f"poison-{poisons}-"
    with fleet(database_url, redis_url, tmp_path) as crew:
        async with submitter(database_url, redis_url) as client:
            await asyncio.to_thread(crew.start, WORKERS)
            for number in range(neighbors):
                await client.submit(f"{innocent}{number}", "wait 2")
            await asyncio.sleep(0.5)
            for number in range(poisons):
                await client.submit(f"{poisonous}{number}", "exit")
            async with asyncio.timeout(WITHIN_S * (1 + poisons // 2)):
                while count(database_url, "")["queued"] + count(database_url, "")["running"]:
                    alive = sum(worker.process.poll() is None for worker in crew.workers)
                    for _ in range(WORKERS - alive):
                        await asyncio.to_thread(crew.launch)
                    await asyncio.sleep(0.2)

    with capsys.disabled():
        print(
            f"\n{poisons} poison turns: {dict(count(database_url, poisonous))}; {neighbors} others:"
            f" {dict(count(database_url, innocent))}; {len(crew.workers)} workers in {time.monotonic() - began:.0f} s"
        )
    assert count(database_url, poisonous) == {"quarantined": poisons}
    assert count(database_url, innocent) == {"done": neighbors}


async def test_turns_beside_two_crashes_run_at_once(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Two killed workers leave many suspected turns, all innocent: they run side by side and don't queue."""
    may_end = tmp_path / "may-end"
    with fleet(database_url, redis_url, tmp_path) as crew:
        async with submitter(database_url, redis_url) as client:
            accepted = [
                await client.submit(f"beside-{number}", f"beside until {may_end}")
                for number in range(SUSPECTS)
            ]
            for crashes in range(2):
                [worker] = await asyncio.to_thread(crew.start)
                await _until_at_work(database_url, crashes)
                worker.kill()
            await asyncio.to_thread(crew.start)
            await _until_at_work(database_url, 2)
            may_end.touch()
            ended = [await client.finished(receipt, within_s=WITHIN_S) for receipt in accepted]
    assert {turn.status for turn in ended} == {TurnStatus.DONE}


def _count_at_work(database: str, crashes: int) -> int:
    """Count the turns that run again after this number of crashes."""
    query = "SELECT count(*) FROM turns WHERE text LIKE 'beside%%' AND status = 'running' AND crashes = %s"
    ((found,),) = read_rows(database, query, (crashes,))
    return found


async def _until_at_work(database: str, crashes: int) -> None:
    await asyncio.to_thread(
        wait_until,
        lambda: _count_at_work(database, crashes) == SUSPECTS,
        within_s=WITHIN_S,
        what=f"all are at work at once after {crashes} crashes",
    )
