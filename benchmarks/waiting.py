"""Measure many sessions that wait for a model in one worker process: ``python -m benchmarks.waiting``.

500 sessions start within one second. Each session submits its next turn after the previous answer. Each turn sleeps
one second to simulate a model, so an ideal turn takes one second. The share of the ideal is one second divided by the
mean latency.
"""

import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any, TypeAlias

import psutil

from benchmarks.candidates import Candidate, run_by_hand, run_ours
from benchmarks.environment import Report, open_stores, own_stores, parse
from benchmarks.measure import Measurement, Phase
from benchmarks.work import CONCURRENCY, MODEL_S, PLAIN
from parley.embedded import Stores
from parley.output import progress

SESSIONS = 500
WAIT_S = 1.0
BAR_TIME = 1.136
"""Maximum ratio of the mean latency to the ideal latency. It corresponds to an 88 % share of the ideal."""
BAR_MB = 150.0


@dataclass(frozen=True, slots=True)
class Waited:
    """The measurements of one round. `grown_mb`: growth of the worker's resident memory during the round, in MB."""

    measured: Measurement
    grown_mb: float

    @property
    def share(self) -> float:
        return WAIT_S / fmean(self.measured.latencies_s)

    @property
    def p99_ms(self) -> float:
        return 1000 * quantiles(self.measured.latencies_s, n=100)[-1]


Opener: TypeAlias = Callable[[Stores, Path], AbstractAsyncContextManager[Candidate]]
"""A function that runs a candidate with one worker process and the given stores."""
Results: TypeAlias = dict[str, list[Waited]]


_ECHO = {"name": "echo", "application": "benchmarks.echo", "domain": "echo"}
OURS: dict[str, Opener] = {"by hand": run_by_hand, "echo": partial(run_ours, **_ECHO, processes=1)}


async def measure_waiting(
    openers: dict[str, Opener],
    running: Stores,
    folder: Path,
    *,
    rounds: int,
    turns: int,
    counted: Callable[[int, int], None],
) -> Results:
    """Measure one candidate at a time, so that only its worker is running. `turns`: number of turns per session."""
    results: Results = defaultdict(list)
    os.environ |= {
        MODEL_S: str(WAIT_S),
        CONCURRENCY: str(SESSIONS),
    }  # inherited by all processes that start later
    for number in range(rounds):
        for place, (name, opener) in enumerate(openers.items()):
            own = own_stores(running, 100 + number * len(openers) + place, redis=15)
            async with opener(own, folder) as candidate:
                results[name].append(await _talk(candidate, turns))
            counted(number * len(openers) + place + 1, rounds * len(openers))
    return results


async def _talk(candidate: Candidate, turns: int) -> Waited:
    sessions = [f"waiting-{number}" for number in range(SESSIONS)]
    await candidate.prepare(sessions)
    texts = [PLAIN[number % len(PLAIN)] for number in range(turns)]

    async def one(number: int, session: str) -> list[float]:
        await asyncio.sleep(number / SESSIONS)
        return await candidate.converse(session, texts)

    ready = _resident_mb(candidate.workers)
    phase = Phase(candidate.workers)
    times = await asyncio.gather(*(one(number, session) for number, session in enumerate(sessions)))
    measured = phase.end(SESSIONS * turns, [one for several in times for one in several])
    return Waited(measured, _resident_mb(candidate.workers) - ready)


def _resident_mb(workers: list[psutil.Process]) -> float:
    processes = [one for worker in workers for one in (worker, *worker.children(recursive=True))]
    return sum(one.memory_info().rss for one in processes) / 2**20


def rows_of(results: Results) -> list[dict[str, Any]]:
    return [
        {
            "candidate": name,
            "turns/s": median(SESSIONS * one.share / WAIT_S for one in rounds),
            "share of the ideal": round(median(one.share for one in rounds), 3),
            "p50 ms": median(one.measured.p50_ms for one in rounds),
            "p99 ms": median(one.p99_ms for one in rounds),
            "worker CPU us": median(one.measured.cpu_us("worker") for one in rounds),
            "MB more": median(one.grown_mb for one in rounds),
        }
        for name, rounds in results.items()
    ]


async def main() -> int:
    arguments = parse(
        "benchmarks.waiting",
        __doc__,
        rounds=(3, "rounds per candidate"),
        turns=(10, "turns per session"),
        only=(tuple(OURS), "candidates to run. Default: all"),
    )
    openers = {name: OURS[name] for name in arguments.only}
    with open_stores() as (running, folder), progress("candidates") as counted:
        limits = {"rounds": arguments.rounds, "turns": arguments.turns}
        results = await measure_waiting(openers, running, folder, **limits, counted=counted)
    report = Report("waiting", as_json=arguments.json)
    rows = rows_of(results)
    report.rows(f"{SESSIONS} sessions, one worker process", rows)
    kept = True
    for row in (row for row in rows if row["candidate"] == "echo"):
        kept &= report.verdict("turn time / ideal time", 1 / row["share of the ideal"], BAR_TIME)
        kept &= report.verdict("MB more", row["MB more"], BAR_MB)
    report.end()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
