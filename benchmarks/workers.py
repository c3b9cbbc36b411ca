"""Measure throughput by number of worker processes: ``python -m benchmarks.workers``.

Turns are queued while the workers are suspended, then the workers run these turns. “Waiting” turns sleep to simulate a
model call, and each process runs at most 16 of them at the same time, so only more processes help. “Computing” turns
don't sleep, so the machine's cores limit them.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.candidates import drain, run_ours
from benchmarks.environment import Report, open_stores, own_stores, parse
from benchmarks.work import MODEL_S
from parley.embedded import Stores
from parley.output import progress

COUNTS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of turn, and the load to measure it.

    `wait_s`: simulated model latency in seconds. `lanes`: maximum number of concurrent sessions per process.
    `sessions`: number of sessions, enough to use all processes evenly. `turns`: number of turns per session.
    """

    wait_s: float
    lanes: int
    sessions: int
    turns: int


KINDS = {"waiting": Kind(0.2, 16, 192, 5), "computing": Kind(0.0, 1000, 400, 10)}


async def main() -> None:
    arguments = parse(
        "benchmarks.workers",
        __doc__,
        rounds=(3, "rounds per measurement"),
        only=(tuple(KINDS), "kinds to measure. Default: both"),
    )
    rows: list[dict[str, Any]] = []
    with open_stores() as (running, folder), progress("measurements") as counted:
        number = 0
        for name in arguments.only:
            alone = 0.0
            for count in COUNTS:
                number += 1
                rate = await _measure(name, count, arguments.rounds, own_stores(running, number), folder)
                alone = alone or rate
                rows.append({"turns": name, "processes": count, "turns/s": rate, "of one": rate / alone})
                counted(number, len(arguments.only) * len(COUNTS))
    report = Report("workers", as_json=arguments.json)
    report.rows("rates", rows)
    report.end()


async def _measure(turns: str, count: int, rounds: int, stores: Stores, folder: Path) -> float:
    """Return the median rate of `count` worker processes over several rounds, in turns per second, after a warm-up.

    `turns`: a kind of turn in `KINDS`.
    """
    kind = KINDS[turns]
    os.environ |= {"PARLEY_LANES_PER_PROCESS": str(kind.lanes), MODEL_S: str(kind.wait_s)}
    name, application = f"{turns}-{count}", "benchmarks.echo"
    opened = run_ours(stores, folder, name=name, application=application, domain="echo", processes=count)
    async with opened as ours:
        measured = [
            await drain(ours, [f"r{turn}-{n}" for n in range(kind.sessions)], ["say"] * kind.turns)
            for turn in range(rounds + 1)
        ]
    return median(one.rate for one in measured[1:])


if __name__ == "__main__":
    asyncio.run(main())
