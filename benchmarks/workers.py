"""How throughput follows the number of worker processes: ``python -m benchmarks.workers``.

Turns are queued while the workers are frozen, then they run. Twice: turns that wait for a model, with few
lanes per process, so that only more processes help; and turns that compute, which the machine's cores bound.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path

import psycopg

from benchmarks.candidates import run_ours
from orchestrator.adapters.postgres.migrate import migrate
from parley.embedded import Stores, stores

COUNTS = (1, 2, 3)
LANES = 16
KINDS = {"waiting": ("benchmarks.waiting", 100, 5), "computing": ("benchmarks.echo", 200, 10)}
"""Application, sessions, turns of each."""


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.workers")
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder, stores(Path(folder)) as running:
        for kind in KINDS:
            rates = {count: await _measure(running, Path(folder), kind, count, rounds) for count in COUNTS}
            _report(kind, rates)


async def _measure(running: Stores, folder: Path, kind: str, count: int, rounds: int) -> float:
    """Turns per second of so many processes; the median of the rounds."""
    application, sessions, turns = KINDS[kind]
    own = _own(running, f"{kind}_{count}", number=1 + COUNTS.index(count) + 4 * (kind == "computing"))
    os.environ["PARLEY_LANES_PER_PROCESS"] = str(LANES) if kind == "waiting" else "1000"
    rates: list[float] = []
    async with run_ours(
        own, folder, name=f"{kind}-{count}", application=application, domain="echo", processes=count
    ) as ours:
        for number in range(rounds + 1):
            names = [f"r{number}-{session}" for session in range(sessions)]
            await ours.prepare(names)
            _signal(ours.workers, signal.SIGSTOP)
            await asyncio.gather(*(ours.enqueue(name, ["say"] * turns) for name in names))
            _signal(ours.workers, signal.SIGCONT)
            began = time.perf_counter()
            await ours.drained()
            if number:  # the first round warms up
                rates.append(sessions * turns / (time.perf_counter() - began))
    return statistics.median(rates)


def _own(running: Stores, name: str, *, number: int) -> Stores:
    """A database and a Redis number of its own."""
    with psycopg.connect(running.database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    base, redis_base = running.database_url.rpartition("/")[0], running.redis_url.rpartition("/")[0]
    own = Stores(f"{base}/{name}", f"{redis_base}/{number}")
    migrate(own.database_url)
    return own


def _signal(workers: list, number: signal.Signals) -> None:
    for worker in workers:
        worker.send_signal(number)


def _report(kind: str, rates: dict[int, float]) -> None:
    print(f"{kind} turns, {os.cpu_count()} cores:")
    for count, rate in rates.items():
        print(
            f"  {count} worker{'s' if count > 1 else ' '}  {rate:8.0f} turns/s  {rate / rates[1]:5.2f} x one"
        )


if __name__ == "__main__":
    asyncio.run(main())
