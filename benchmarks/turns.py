"""Turns per second and CPU per turn of the real path, against a hand-written Celery task, in one run.

Closed loop: 16 sessions, each submits its next turn when the last is answered. Drain: 2,000 turns are
queued while the workers are frozen, then they run. Rounds are interleaved; ratios are medians.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from benchmarks.measure import GROUPS, Measurement, Phase, meter_of
from orchestrator.adapters.postgres.migrate import migrate
from parley.embedded import Stores, stores

if TYPE_CHECKING:
    from benchmarks.candidates import Candidate

SESSIONS = 16
DRAIN_SESSIONS, DRAIN_TURNS = 200, 10
BAR_CPU = 2.5
PLAIN = ["say something", "say something else"]
BOOKING = [
    "Book a flight from Oslo to Madrid tomorrow",
    "economy please",
    "show me flights from Berlin to Rome on Friday",
    "yes",
    "what can you do?",
    "cancel that",
]
SAID = {"by hand": PLAIN, "echo": PLAIN, "travel": BOOKING}


async def main() -> None:
    arguments = _parse()
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder, stores(Path(folder)) as running:
        # The hand-written task reads its addresses from the environment when it is imported.
        os.environ.update(DATABASE_URL=running.database_url, REDIS_URL=running.redis_url)
        async with _candidates(running, Path(folder), arguments.only) as candidates:
            results = await _measure(candidates, arguments.rounds, arguments.turns)
    _report(results)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=200, help="turns of each session in the closed loop")
    parser.add_argument("--only", nargs="*", help="names of candidates; all of them by default")
    return parser.parse_args()


@asynccontextmanager
async def _candidates(
    running: Stores, folder: Path, only: list[str] | None
) -> AsyncIterator[list[Candidate]]:
    from benchmarks.candidates import run_by_hand, run_ours  # noqa: PLC0415 - after the environment is set

    makers = {
        "by hand": lambda: run_by_hand(running, folder),
        "echo": lambda: run_ours(
            _own(running, 1), folder, name="echo", application="benchmarks.echo", domain="echo"
        ),
        "travel": lambda: run_ours(
            _own(running, 2), folder, name="travel", application="workers.app", domain="travel"
        ),
    }
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(make())
            for name, make in makers.items()
            if not only or name in only
        ]


def _own(running: Stores, number: int) -> Stores:
    """A database and a Redis number of its own, so that no candidate takes another's sessions."""
    name = f"candidate_{number}"
    with psycopg.connect(running.database_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    base, redis_base = running.database_url.rpartition("/")[0], running.redis_url.rpartition("/")[0]
    own = Stores(f"{base}/{name}", f"{redis_base}/{number}")
    migrate(own.database_url)
    return own


async def _measure(
    candidates: list[Candidate], rounds: int, turns: int
) -> dict[tuple[str, str], list[Measurement]]:
    results: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for number in range(rounds + 1):
        for candidate in candidates:
            warm_up = number == 0
            loop = await _closed_loop(candidate, f"loop-{number}", 20 if warm_up else turns)
            drain = await _drain(candidate, f"drain-{number}", 2 if warm_up else DRAIN_TURNS)
            if not warm_up:
                results["closed loop", candidate.name].append(loop)
                results["drain", candidate.name].append(drain)
    return results


async def _closed_loop(candidate: Candidate, prefix: str, turns: int) -> Measurement:
    sessions = [f"{candidate.name}-{prefix}-{n}".replace(" ", "_") for n in range(SESSIONS)]
    await candidate.prepare(sessions)
    texts = [SAID[candidate.name][n % len(SAID[candidate.name])] for n in range(turns)]
    phase = Phase(meter_of(candidate.workers))
    times = await asyncio.gather(*(candidate.converse(session, texts) for session in sessions))
    return phase.end(SESSIONS * turns, [one for several in times for one in several])


async def _drain(candidate: Candidate, prefix: str, turns: int) -> Measurement:
    sessions = [f"{candidate.name}-{prefix}-{n}".replace(" ", "_") for n in range(DRAIN_SESSIONS)]
    await candidate.prepare(sessions)
    texts = [SAID[candidate.name][n % len(SAID[candidate.name])] for n in range(turns)]
    _signal_all(candidate, signal.SIGSTOP)
    try:
        await asyncio.gather(*(candidate.enqueue(session, texts) for session in sessions))
        phase = Phase(meter_of(candidate.workers))
    finally:
        _signal_all(candidate, signal.SIGCONT)
    await candidate.drained()
    return phase.end(DRAIN_SESSIONS * turns)


def _signal_all(candidate: Candidate, number: signal.Signals) -> None:
    for worker in candidate.workers:
        for process in (worker, *worker.children(recursive=True)):
            process.send_signal(number)


def _report(results: dict[tuple[str, str], list[Measurement]]) -> None:
    print(f"{'':28}{'turns/s':>9}{'p50 ms':>8}{'worker':>9}{'postgres':>9}{'redis':>7}  CPU us per turn")
    for (phase, name), rounds in sorted(results.items()):
        row = [statistics.median(getattr(one, key) for one in rounds) for key in ("rate", "p50_ms")]
        cpu = [statistics.median(one.cpu_us(group) for one in rounds) for group in GROUPS]
        print(f"{phase + ', ' + name:28}{row[0]:9.0f}{row[1]:8.2f}{cpu[0]:9.0f}{cpu[1]:9.0f}{cpu[2]:7.0f}")
    for (phase, name), rounds in sorted(results.items()):
        yardstick = results.get((phase, "by hand"))
        if name == "by hand" or not yardstick:
            continue
        rate = statistics.median(a.rate / b.rate for a, b in zip(rounds, yardstick, strict=True))
        cpu = statistics.median(
            a.cpu_us("worker") / b.cpu_us("worker") for a, b in zip(rounds, yardstick, strict=True)
        )
        verdict = "within" if cpu <= BAR_CPU else "outside"
        print(
            f"{phase}: {name} / by hand: {rate:.2f} x turns per second, {cpu:.2f} x worker CPU per turn"
            f" ({verdict} the bar of {BAR_CPU} x CPU)"
        )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
