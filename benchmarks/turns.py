"""Compare the production path with a hand-written Celery task: turns per second, and CPU time per turn.

Closed loop: each of 16 sessions submits its next turn after the previous answer. Drain: 2,000 turns are queued while
the workers are suspended, then the workers run these turns. Rounds are interleaved. The ratios are medians of the
rounds' ratios.
"""

import asyncio
import math
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.candidates import Candidate, drain, run_by_hand, run_ours
from benchmarks.environment import Report, open_stores, own_stores, parse
from benchmarks.measure import GROUPS, Measurement, Phase
from benchmarks.work import PLAIN
from parley.embedded import Stores
from parley.output import progress

SESSIONS = 16
DRAIN_SESSIONS, DRAIN_TURNS = 200, 10
BAR_CPU = 2.5
BOOKING = [
    "Book a flight from Oslo to Madrid tomorrow",
    "economy please",
    "show me flights from Berlin to Rome next Friday",
    "yes",
    "what can you do?",
    "cancel that",
]
SAID = {"by hand": PLAIN, "echo": PLAIN, "travel": BOOKING}


async def main() -> int:
    arguments = parse(
        "benchmarks.turns",
        __doc__,
        rounds=(3, "rounds of the closed loop and of the drain"),
        turns=(200, "turns per session in the closed loop"),
        queued=(DRAIN_TURNS, f"waiting turns in each of {DRAIN_SESSIONS} sessions"),
        only=(tuple(SAID), "candidates to run. Default: all"),
        bar=(BAR_CPU, "maximum ratio of worker CPU to the hand-written task; exits with 1 above it"),
    )
    with open_stores() as (running, folder):
        async with run_candidates(running, folder, arguments.only) as candidates:
            with progress("turns, phases") as counted:
                results = await measure(
                    candidates, arguments.rounds, arguments.turns, arguments.queued, counted=counted
                )
    return 0 if _report(results, arguments.bar, Report("turns", as_json=arguments.json)) else 1


@asynccontextmanager
async def run_candidates(running: Stores, folder: Path, only: list[str]) -> AsyncIterator[list[Candidate]]:
    """Run the candidates that `only` lists (see `SAID`), and yield them."""
    applications = {"echo": "benchmarks.echo", "travel": "workers.app"}
    async with AsyncExitStack() as stack:
        candidates: list[Candidate] = []
        for number, name in enumerate(SAID):
            if name not in only:
                continue
            if name == "by hand":
                opened = run_by_hand(running, folder)
            else:
                own = own_stores(running, number)
                opened = run_ours(own, folder, name=name, application=applications[name], domain=name)
            candidates.append(await stack.enter_async_context(opened))
        yield candidates


Results = dict[tuple[str, str], list[Measurement]]


async def measure(
    candidates: list[Candidate],
    rounds: int,
    turns: int,
    queued: int,
    keep: Callable[[Results], None] = lambda _: None,
    counted: Callable[[int, int], None] = lambda _done, _total: None,
) -> Results:
    """Measure the candidates in interleaved rounds after a warm-up.

    `turns`: number of turns per session in the closed loop. `queued`: number of turns per session in the
    drain. `keep`: called with the results so far. `counted`: called with the number of finished steps and the total.
    """
    results: Results = defaultdict(list)
    for number in range(rounds + 1):
        warm_up = number == 0
        for candidate in candidates:
            loop = await talk(candidate, f"loop-{number}", min(4, turns) if warm_up else turns)
            names = _sessions(candidate, f"drain-{number}", DRAIN_SESSIONS)
            drained = await drain(candidate, names, _texts(candidate, 1 if warm_up else queued))
            for phase, measured in {"closed loop": loop, "drain": drained}.items():
                if not warm_up:
                    results[phase, candidate.name].append(measured)
            done = number * len(candidates) + candidates.index(candidate) + 1
            counted(done, (rounds + 1) * len(candidates))
            keep(results)
    return results


async def talk(candidate: Candidate, prefix: str, turns: int) -> Measurement:
    """Measure a closed loop of `SESSIONS` new sessions, which run `turns` turns each."""
    sessions = _sessions(candidate, prefix, SESSIONS)
    await candidate.prepare(sessions)
    phase = Phase(candidate.workers)
    texts = _texts(candidate, turns)
    times = await asyncio.gather(*(candidate.converse(session, texts) for session in sessions))
    return phase.end(SESSIONS * turns, [one for several in times for one in several])


def _sessions(candidate: Candidate, prefix: str, count: int) -> list[str]:
    return [f"{candidate.name}-{prefix}-{n}".replace(" ", "_") for n in range(count)]


def _texts(candidate: Candidate, turns: int) -> list[str]:
    said = SAID.get(candidate.name, PLAIN)
    return [said[n % len(said)] for n in range(turns)]


def _report(results: Results, bar: float, report: Report) -> bool:
    """Report the rounds' medians, and ratios to the hand-written task. Return True if every ratio is within `bar`."""
    kept = True
    rows: list[dict[str, Any]] = []
    for (phase, name), rounds in sorted(results.items()):
        rate, p50 = (median(getattr(one, key) for one in rounds) for key in ("rate", "p50_ms"))
        cpu = {f"{group} CPU us": median(one.cpu_us(group) for one in rounds) for group in GROUPS}
        latency = None if math.isnan(p50) else round(p50, 2)
        rows.append({"phase": phase, "candidate": name, "turns/s": rate, "p50 ms": latency, **cpu})
    report.rows("rates", rows)
    for (phase, name), rounds in sorted(results.items()):
        yardstick = results.get((phase, "by hand"))
        if name == "by hand" or not yardstick:
            continue
        cpu = median(
            ours.cpu_us("worker") / hand.cpu_us("worker")
            for ours, hand in zip(rounds, yardstick, strict=True)
        )
        kept &= report.verdict(f"{phase}: {name} / by hand, worker CPU per turn", cpu, bar)
    report.end()
    return kept


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
