"""Measure how much maintenance slows down concurrent turns: `make bench-maintenance`.

Turns arrive at a fixed rate in many sessions. Rounds with and without a background run of 1,000 items alternate.
Each item computes for about ten milliseconds and is recorded. The ratio compares the medians of the rounds' p95
latencies, and its limit is 1.5.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import time
from contextlib import ExitStack

from benchmarks.environment import ROOT, open_stores, parse, run_workers, settings_of, verdict
from orchestrator.bootstrap import Ports, open_ports
from orchestrator.ports.runs.records import NewRun
from orchestrator.ports.runs.status import ENDED
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.conversation import run_turn

BAR = 1.5
ITEMS = 1000
SESSIONS = 50
WITHIN_S = 60.0
SAID = ("list the shelves", "show all shelves", "which shelves are there")
FLOW = '''
import hashlib

from internal_flows.stages import InternalFlow, Options


class Chores(InternalFlow):
    """Each item computes for about ten milliseconds."""

    name = "chores"
    trigger = "by_hand"
    options = Options(concurrency=8)

    async def work(self, run, item, data):
        return hashlib.pbkdf2_hmac("sha256", b"chore", str(item).encode(), 20_000).hex()
'''


async def take_turns(ports: Ports, turns: int, rate: float) -> list[float]:
    """Run turns at a fixed rate, and return the latencies from submission to answer, in milliseconds."""

    async def one(number: int) -> float:
        session_id = SessionId(f"bench-{number % SESSIONS}")
        began = time.perf_counter()
        text = SAID[number // SESSIONS % len(SAID)]
        await run_turn(ports, session_id, text, "depot", within_s=WITHIN_S)
        return (time.perf_counter() - began) * 1000

    begun: list[asyncio.Task[float]] = []
    start = time.perf_counter()
    for number in range(turns):
        await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
        begun.append(asyncio.create_task(one(number)))
    return list(await asyncio.gather(*begun))


async def start_chores(ports: Ports) -> str:
    started = await ports.stores.runs.start((NewRun("chores", inputs=tuple(range(ITEMS))),))
    await ports.messages.send_runs(started)
    return started.runs["chores"]


async def during_chores(ports: Ports, turns: int, rate: float) -> tuple[list[float], int]:
    """Run turns during a background run, and wait for the run to end.

    Return the turns' latencies in milliseconds, and the number of items that ended during the turns.
    """
    run_id = await start_chores(ports)
    while (await ports.stores.runs.get(DEFAULT_TENANT, run_id)).progress.total == 0:
        await asyncio.sleep(0.05)
    before = (await ports.stores.runs.get(DEFAULT_TENANT, run_id)).progress.ended
    latencies = await take_turns(ports, turns, rate)
    ended = (await ports.stores.runs.get(DEFAULT_TENANT, run_id)).progress.ended - before
    while (await ports.stores.runs.get(DEFAULT_TENANT, run_id)).status not in ENDED:
        await asyncio.sleep(0.1)
    return latencies, ended


def p95(latencies: list[float]) -> float:
    return statistics.quantiles(latencies, n=20)[-1]


async def measure(ports: Ports, arguments: argparse.Namespace) -> list[tuple[float, float]]:
    """Return each round's p95 latencies in milliseconds, without and with the background run."""
    turns, rate = arguments.turns, arguments.rate
    rounds: list[tuple[float, float]] = []
    await take_turns(ports, SESSIONS, rate)
    for number in range(arguments.rounds):
        alone = p95(await take_turns(ports, turns, rate))
        latencies, ended = await during_chores(ports, turns, rate)
        rounds.append((alone, p95(latencies)))
        print(
            f"round {number + 1}: p95 {alone:6.1f} ms alone, {rounds[-1][1]:6.1f} ms with {ended} items,"
            f" {rounds[-1][1] / alone:.2f} times",
            flush=True,
        )
    return rounds


async def main() -> int:
    arguments = parse(
        "benchmarks.maintenance",
        __doc__,
        rounds=(5, "rounds without and with background items"),
        turns=(150, "turns per round"),
        rate=(20.0, "arriving turns per second"),
    )
    with open_stores() as (running, folder), ExitStack() as stack:
        depot = folder / "depot"
        shutil.copytree(ROOT / "tests" / "domains" / "depot", depot)
        (depot / "internal_flows.py").write_text(FLOW)
        for name, queues, threads in (
            ("turns", "turns,submissions", 64),
            ("internal", "internal,urgent", 16),
        ):
            worker = run_workers(
                *(running, folder),
                name=name,
                application="workers.app",
                queues=queues,
                threads=threads,
                environment={"PARLEY_DOMAIN": str(depot)},
            )
            stack.enter_context(worker)
        async with open_ports(settings_of(running)) as ports:
            rounds = await measure(ports, arguments)
    ratio = statistics.median(busy for _, busy in rounds) / statistics.median(alone for alone, _ in rounds)
    return 0 if verdict("95th percentile of turns during maintenance / alone", ratio, BAR) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
