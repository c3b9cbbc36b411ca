"""Measure how much bad tools slow down the turns of other sessions. Bad tools hang, or return wrong or huge results.

The benchmark prints the p50 and p95 latencies of the other sessions' turns, without and with each bad tool, and
their ratios. Either one session uses the tool repeatedly, or many sessions have more hanging calls than there are tool
threads. The benchmark first runs in one process without stores, so that nothing hides the cost of a tool, then in one
Celery worker with Redis and PostgreSQL. Short periods with and without the tool alternate, so that changes in the
machine's speed affect both. The other sessions call a synchronous method, which also needs a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import structlog

from benchmarks.candidates import Ours, run_ours
from benchmarks.environment import open_stores, parse, verdict
from orchestrator.tools.threads import THREADS_PER_TOOL
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId, TurnId, new_id
from parley.simulator import Simulator
from tests.integration.tools.hurtful_domain import BAD, CROWDS, word_of, write_domain

BAR = 1.3
STRETCH = 40
"""Number of the other sessions' turns in each period with or without the bad tool."""
CROWD = 8 * THREADS_PER_TOOL
"""Number of concurrent hanging calls."""
READING_S, PAUSE_S = 0.002, 0.1
"""Pauses between the other sessions' turns, and between uses of a bad tool, in seconds."""
RING = ("use ring", "please use ring")
FAILED = {"timeout", "server_error"}


class Place(Protocol):
    """A system under test: one process without stores, or a Celery worker."""

    async def ring(self, session: str, text: str) -> float:
        """Run a turn that calls the harmless tool. Return the seconds until its reply."""
        ...

    async def use(self, text: str) -> list[str]:
        """Run a turn in a new session. Return the statuses of the turn's tool calls."""
        ...


@dataclass
class InProcess:
    simulator: Simulator
    talks: dict[str, Any] = field(default_factory=dict)

    async def ring(self, session: str, text: str) -> float:
        talk = self.talks.setdefault(session, self.simulator.converse())
        started = time.perf_counter()
        turn = await talk.say(text)
        taken = time.perf_counter() - started
        assert [used["status"] for used in turn["tools"]] == ["ok"], turn
        return taken

    async def use(self, text: str) -> list[str]:
        turn = await self.simulator.converse().say(text)
        return [used["status"] for used in turn["tools"]]


@dataclass
class OnWorker:
    ours: Ours
    known: set[str] = field(default_factory=set)

    async def ring(self, session: str, text: str) -> float:
        if session not in self.known:
            await self.ours.prepare([session])
            self.known.add(session)
        [taken] = await self.ours.converse(session, [text])
        return taken

    async def use(self, text: str) -> list[str]:
        session = new_id("session")
        await self.ours.prepare([session])
        turn_id = await self.ours.submit(session, text)
        waiter = self.ours.ports.waiter
        turn = await waiter(DEFAULT_TENANT, SessionId(session), TurnId(turn_id), 120)
        assert turn.status is TurnStatus.DONE, turn
        assert turn.result is not None
        return [used["status"] for used in turn.result["tools"]]


async def stretch(place: Place) -> list[float]:
    """Run `STRETCH` turns that call the harmless tool, in a new session. Return their latencies in seconds."""
    session, taken = new_id("session"), []
    for number in range(STRETCH):
        taken.append(await place.ring(session, RING[number % 2]))
        await asyncio.sleep(READING_S)
    return taken


@asynccontextmanager
async def again_and_again(place: Place, name: str) -> AsyncIterator[None]:
    """Use a bad tool repeatedly, one call at a time, until the block ends."""
    enough = asyncio.Event()

    async def use() -> None:
        while not enough.is_set():
            ended = await place.use(f"use {word_of(name)}")
            assert FAILED.issuperset(ended), ended
            await asyncio.sleep(PAUSE_S)

    using = asyncio.create_task(use())
    try:
        yield
    finally:
        enough.set()
        await using
        await place.use("use release")


@asynccontextmanager
async def many_at_once(place: Place, name: str, count: int = CROWD) -> AsyncIterator[None]:
    """Keep calls of a bad tool hanging in `count` sessions until the block ends."""
    using = [asyncio.create_task(place.use(f"use {word_of(name)}")) for _ in range(count)]
    await place.use("use ring")  # returns after the bad calls have begun
    try:
        yield
        assert not any(turn.done() for turn in using), "they should have hung"
    finally:
        while not all(turn.done() for turn in using):
            await place.use("use release")
        ended = await asyncio.gather(*using)
    assert {status for turn in ended for status in turn} <= {"ok"}, ended


@dataclass
class Figures:
    alone: list[float] = field(default_factory=list)
    disturbed: list[float] = field(default_factory=list)

    def ratio(self, quantile: int) -> float:
        return _quantile(self.disturbed, quantile) / _quantile(self.alone, quantile)

    def row(self, what: str) -> str:
        parts = [
            f"p{quantile} {_quantile(self.alone, quantile):6.2f} → {_quantile(self.disturbed, quantile):6.2f} ms"
            f" = {self.ratio(quantile):.2f}"
            for quantile in (50, 95)
        ]
        return f"  {what:42} {'   '.join(parts)}"


def _quantile(seconds: list[float], number: int) -> float:
    """Return a percentile of latencies, in milliseconds. `seconds`: the latencies. `number`: for example 95."""
    return 1000 * statistics.quantiles(seconds, n=100, method="inclusive")[number - 1]


Disturbance = Callable[[Place, str], Any]


async def compare(place: Place, rounds: int) -> dict[str, Figures]:
    """Return the other sessions' measurements for each bad tool and usage pattern, by description."""
    cases: list[tuple[str, str, Disturbance]] = [
        *((f"{what}, again and again", name, again_and_again) for name, what in BAD.items()),
        *((f"{what}, {CROWD} at once", name, many_at_once) for name, what in CROWDS.items()),
    ]
    await stretch(place)  # warm-up
    results: dict[str, Figures] = {}
    for what, name, disturbed in cases:
        figures = results[what] = Figures()
        for _ in range(rounds):
            figures.alone += await stretch(place)
            async with disturbed(place, name):
                figures.disturbed += await stretch(place)
        print(figures.row(what), flush=True)
    return results


async def in_process(folder: Path, rounds: int) -> dict[str, Figures]:
    print("In one process:")
    return await compare(InProcess(Simulator.of(folder)), rounds)


async def on_a_worker(folder: Path, rounds: int) -> dict[str, Figures]:
    print("Through a Celery worker, Redis and PostgreSQL:")
    os.environ["PARLEY_DOMAIN"] = str(folder)
    with open_stores() as (running, data):
        async with run_ours(
            running, data, name="hurtful", application="workers.app", domain=folder.name, processes=1
        ) as ours:
            return await compare(OnWorker(ours), rounds)


FORMS: dict[str, Callable[[Path, int], Coroutine[Any, Any, dict[str, Figures]]]] = {
    "process": in_process,
    "worker": on_a_worker,
}


async def main() -> int:
    arguments = parse(
        "benchmarks.hurtful",
        __doc__,
        rounds=(8, f"number of rounds, each with {STRETCH} turns without and {STRETCH} with the bad tool"),
        only=(tuple(FORMS), "forms to run: in one process, or through a Celery worker"),
    )
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    worst: list[float] = []
    with tempfile.TemporaryDirectory(prefix="hurtful") as folder:
        domain = write_domain(Path(folder))
        for name in arguments.only:
            results = await FORMS[name](domain, arguments.rounds)
            worst.append(max(figures.ratio(50) for figures in results.values()))
    return 0 if verdict("Worst ratio of medians", max(worst), BAR) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
