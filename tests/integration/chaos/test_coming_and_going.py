"""Workers that come and go every second under load, as a scaler does it: no turn is lost (RT-17, RT-18, RT-21)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import psutil
import psycopg
import pytest

from orchestrator.adapters.postgres.migrate import migrate
from parley.processes import has_ended
from tests.integration.chaos.checker import check, read_history
from tests.integration.chaos.counting import EFFECTS
from tests.integration.chaos.fleet import ROOT, wait_until
from tests.integration.chaos.submitting import all_finished, submitter

EVERY_S = 1.0
LANES = 10
WORKING = "SELECT count(*) FROM lanes WHERE lease_owner IS NOT NULL"


@dataclass
class Nursery:
    """See `tests.integration.chaos.nursery`."""

    process: subprocess.Popen[str]
    logs: Path
    born: int = 0
    alive: list[tuple[psutil.Process, Path]] = field(default_factory=list)

    def begin(self) -> None:
        """A new worker; it is not ready yet."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        name = f"n{self.born}"
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        self.born += 1
        self.alive.append((psutil.Process(int(self.process.stdout.readline())), self.logs / f"{name}.log"))

    def ready(self) -> list[psutil.Process]:
        """The workers that take sessions, the oldest first."""
        return [worker for worker, log in self.alive if log.exists() and b"ready." in log.read_bytes()]

    def end(self, worker: psutil.Process, ending: signal.Signals) -> None:
        self.alive = [entry for entry in self.alive if entry[0] != worker]
        worker.send_signal(ending)


@contextmanager
def nursery(database_url: str, redis_url: str, logs: Path, **settings: str) -> Iterator[Nursery]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        **settings,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.chaos.nursery", str(logs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    home = Nursery(process, logs)
    with process:
        try:
            yield home
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)
    for worker, _ in home.alive:
        wait_until(lambda worker=worker: has_ended(worker), within_s=20, what="every worker has ended")


@pytest.fixture
def database(database_url: str) -> str:
    migrate(database_url)
    with psycopg.connect(database_url) as connection:
        connection.execute(EFFECTS)
        connection.execute("TRUNCATE counted_effects")
        connection.execute("TRUNCATE sessions, turns, events, states, state_history CASCADE")
    return database_url


async def test_no_turn_is_lost_while_workers_come_and_go(
    database: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _come_and_go(database, redis_url, tmp_path, capsys, sessions=30, turns=4, endings=4)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_no_turn_is_lost_while_workers_come_and_go_for_long(
    database: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await _come_and_go(database, redis_url, tmp_path, capsys, sessions=100, turns=20, endings=100)


async def _come_and_go(
    database: str,
    redis_url: str,
    logs: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    sessions: int,
    turns: int,
    endings: int,
) -> None:
    """Rounds of so many turns for each session, until so many workers have ended meanwhile."""
    ended: Counter[str] = Counter()
    with nursery(database, redis_url, logs, PARLEY_MAX_ATTEMPTS="50", PARLEY_RUNNER_LINGER_S="1") as home:
        home.begin()
        home.begin()
        async with submitter(database, redis_url) as client:
            replacing = asyncio.create_task(_replace_again_and_again(home, ended))
            while ended.total() < endings:
                await client.submit_all([f"go-{number}" for number in range(sessions)], turns, _text)
                await all_finished(database, within_s=90)
            replacing.cancel()
            await asyncio.gather(replacing, return_exceptions=True)
            history = read_history(database, client.accepted)
    with capsys.disabled():
        print(f"\n{len(client.accepted)} turns, workers that ended meanwhile: {dict(ended)}")
    assert min(ended["SIGTERM"], ended["SIGKILL"]) >= endings // 2
    assert Counter(turn.status for turn in history.turns) == {"done": len(client.accepted)}
    assert check(history) == []


def _text(number: int) -> str:
    return "effect wait 0.4" if number % 4 == 0 else "wait 0.4"


async def _replace_again_and_again(home: Nursery, ended: Counter[str]) -> None:
    """Every second one more comes, and the oldest goes, in peace or not, as soon as two are ready."""
    for ending in cycle((signal.SIGTERM, signal.SIGKILL)):
        await asyncio.sleep(EVERY_S)
        while len(ready := home.ready()) < 2:
            await asyncio.sleep(0.1)
        await asyncio.to_thread(home.begin)
        home.end(ready[0], ending)
        ended[ending.name] += 1


async def test_each_further_worker_takes_its_share_at_once(
    database: str, redis_url: str, tmp_path: Path
) -> None:
    """What runs side by side is the lanes of all workers together: throughput follows their number.

    By count, not by the clock: as many turns are at work as there is room for, whenever one more comes.
    """
    with nursery(database, redis_url, tmp_path, PARLEY_LANES_PER_PROCESS=str(LANES)) as home:
        async with submitter(database, redis_url) as client:
            waiting = [f"wide-{number}" for number in range(4 * LANES)]
            await client.submit_all(waiting, 1, lambda _: "wait 60")
            for workers in (1, 2, 3):
                await asyncio.to_thread(home.begin)
                await _until_at_work(database, workers * LANES)
            for worker, _ in home.alive:
                worker.kill()


async def _until_at_work(database: str, expected: int) -> None:
    seen: Counter[int] = Counter()
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + 60
    while (working := await asyncio.to_thread(_at_work, database)) != expected:
        seen[working] += 1
        assert loop.time() < ends_at, f"{expected} sessions should be at work, but there were {dict(seen)}"
        await asyncio.sleep(0.2)


def _at_work(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute(WORKING).fetchone()
    assert row is not None
    return row[0]
