"""How throughput follows the number of worker processes: ``python -m benchmarks.workers``.

Turns are queued while the workers are frozen, then they run. Twice: turns that wait for a model, with few
lanes per process, so that only more processes help; and turns that compute, which the machine's cores bound.
Then workers come and go while turns wait, and each period is measured. Last, how soon a new process of the
travel domain has answered a turn that waits for it.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
import psycopg

from benchmarks.candidates import Ours, drain, enqueue, run_ours
from benchmarks.environment import open_stores, own_stores, parse, settings_of
from benchmarks.measure import GROUPS, Measurement, cpu_s
from orchestrator.bootstrap import open_ports
from parley.embedded import Stores

COUNTS = (1, 2, 3)
PERIODS = (1, 2, 3, 2, 1, 3, 1)
PERIOD_S = 4.0
LANES = 16
FINISHED = "SELECT count(*) FROM turns WHERE finished_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of turns. `sessions` fill the lanes of each number of workers without a rest."""

    domain: str
    lanes: int
    sessions: int
    turns: int

    @property
    def application(self) -> str:
        return "workers.app" if self.domain == "travel" else "benchmarks.echo"


KINDS = {"waiting": Kind("waiting", LANES, 192, 5), "computing": Kind("echo", 1000, 400, 10)}
TRAVEL = Kind("travel", 1000, 1, 1)
CHANGING = Kind("waiting", LANES, 600, 10)


async def main() -> None:
    arguments = parse(
        "benchmarks.workers",
        __doc__,
        rounds=(3, "of each measurement"),
        only=((*KINDS, "changing", "starting"), "all of them by default"),
    )
    with open_stores() as (running, folder):
        bench = Bench(running, folder)
        for name, kind in KINDS.items():
            if name in arguments.only:
                _report(name, {count: await bench.drain(kind, count, arguments.rounds) for count in COUNTS})
        if "changing" in arguments.only:
            _report_periods(await bench.change(CHANGING))
        if "starting" in arguments.only:
            _report_starts(await bench.start(arguments.rounds))


class Bench:
    """Measures on one pair of stores; each measurement has a database and a Redis number of its own."""

    def __init__(self, running: Stores, folder: Path) -> None:
        self._running = running
        self._folder = folder
        self._used = 0
        self._started = 0

    async def drain(self, kind: Kind, count: int, rounds: int) -> list[Measurement]:
        """So many workers carry out what was queued, again and again."""
        async with self._start(kind, self._own(), count) as ours:
            measured = [
                await drain(ours, _names(f"r{number}", kind.sessions), ["say"] * kind.turns)
                for number in range(rounds + 1)
            ]
        return measured[1:]  # the first round warms up

    async def change(self, kind: Kind) -> list[tuple[int, float]]:
        """The workers of each period and its turns per second, with more turns waiting all the time."""
        own = self._own()
        measured: list[tuple[int, float]] = []
        async with self._start(kind, own) as ours, AsyncExitStack() as closing:
            names = _names("c", kind.sessions)
            await ours.prepare(names)
            await enqueue(ours, names, ["say"] * kind.turns)
            further: list[AsyncExitStack] = []
            for count in PERIODS:
                while 1 + len(further) < count:
                    further.append(await closing.enter_async_context(AsyncExitStack()))
                    await further[-1].enter_async_context(self._start(kind, own))
                while 1 + len(further) > count:
                    await further.pop().aclose()
                measured.append((count, await _rate(own)))
        return measured

    async def start(self, rounds: int) -> dict[str, list[tuple[float, float, int]]]:
        """Until the first answer of a new process, without and with what others have trained: seconds, CPU
        seconds and resident MiB."""
        times: dict[str, list[tuple[float, float, int]]] = {"trains": [], "takes over": []}
        own = self._own()
        async with open_ports(settings_of(own)) as ports:
            client = Ours(ports, [], "client", "travel")
            for number in range(rounds):
                for way, seen in times.items():
                    kept = self._folder / f"trained-{number}"  # the first of the two fills it
                    os.environ["PARLEY_TRAINED_FOLDER"] = str(kept)
                    session = f"s{number}-{way[0]}"
                    await client.prepare([session])
                    await client.submit(session, "hello")
                    began = time.perf_counter()
                    async with self._start(TRAVEL, own) as started:
                        await client.drained()
                        worker = started.workers[0]
                        memory = worker.memory_info().rss >> 20
                        seen.append((time.perf_counter() - began, cpu_s(worker), memory))
        return times

    def _start(self, kind: Kind, own: Stores, count: int = 1) -> AbstractAsyncContextManager[Ours]:
        os.environ["PARLEY_LANES_PER_PROCESS"] = str(kind.lanes)
        self._started += 1
        name, application = f"w{self._started}", kind.application
        return run_ours(
            own, self._folder, name=name, application=application, domain=kind.domain, processes=count
        )

    def _own(self) -> Stores:
        self._used += 1
        return own_stores(self._running, self._used)


def _names(prefix: str, sessions: int) -> list[str]:
    return [f"{prefix}-{session}" for session in range(sessions)]


async def _rate(own: Stores) -> float:
    """Turns per second over one period."""
    async with await psycopg.AsyncConnection.connect(own.database_url, autocommit=True) as connection:
        before, began = await _finished(connection), time.perf_counter()
        await asyncio.sleep(PERIOD_S)
        return (await _finished(connection) - before) / (time.perf_counter() - began)


async def _finished(connection: psycopg.AsyncConnection) -> int:
    row = await (await connection.execute(FINISHED)).fetchone()
    assert row is not None
    return row[0]


def _report(kind: str, measured: dict[int, list[Measurement]]) -> None:
    print(f"{kind} turns, {psutil.cpu_count()} cores; CPU in us per turn:")
    print(f"  workers  turns/s  x one{''.join(f'{group:>10}' for group in GROUPS)}  cores at work")
    rates = {count: median(one.rate for one in rounds) for count, rounds in measured.items()}
    for count, rounds in measured.items():
        costs = "".join(f"{median(one.cpu_us(group) for one in rounds):10.0f}" for group in GROUPS)
        cores = median(sum(one.cpu_s.values()) / one.wall_s for one in rounds)
        print(f"  {count:7}{rates[count]:9.0f}{rates[count] / rates[1]:7.2f}{costs}{cores:10.2f}", flush=True)


def _report_periods(measured: list[tuple[int, float]]) -> None:
    """`x one`: against the periods with one worker."""
    one = median(rate for count, rate in measured if count == 1)
    print(f"waiting turns, workers come and go every {PERIOD_S:.0f} s:")
    print("  workers  turns/s  x one")
    for count, rate in measured:
        print(f"  {count:7}{rate:9.0f}{rate / one:7.2f}")
    outside = [(count, rate) for count, rate in measured if not 0.8 * count <= rate / one <= 1.2 * count]
    print("  each period is within a fifth of its workers' share" if not outside else f"  outside: {outside}")


def _report_starts(times: dict[str, list[tuple[float, float, int]]]) -> None:
    print("a new process of the travel domain, until its first answer:")
    for way, seen in times.items():
        wall_s, spent_s, memory = (median(column) for column in zip(*seen, strict=True))
        print(f"  {way:12}{wall_s:6.2f} s{spent_s:6.2f} s CPU{memory:6.0f} MiB")


if __name__ == "__main__":
    asyncio.run(main())
