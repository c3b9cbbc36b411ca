"""Runs a soak: the load on a thread of its own, the faults on the main one, the judgement at the end."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import psycopg

from orchestrator.client import AsyncClient
from orchestrator.errors import Unavailable
from parley.soak.bookings import Booker, Tally
from parley.soak.checks import check, read_history, snapshot
from parley.soak.faults import Broken, break_something
from parley.stack import RunningStack
from parley.supervision import Watch, look

_LOOK_EVERY_S = 0.2
_SETTLED_WITHIN_S = 180.0
_CLIENT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakPlan:
    """`sessions`: conversations at a time. `fault_every_s`: the mean time from one fault to the next."""

    seconds: float
    sessions: int
    fault_every_s: float
    seed: int


@dataclass(slots=True)
class SoakReport:
    """What was done, and every promise that was broken; none when `breaches` is empty."""

    seed: int
    seconds: float = 0.0
    conversations: int = 0
    turns: int = 0
    retries: int = 0
    """Requests that had to be sent again, because the gateway or what is behind it was away."""
    faults: Counter[str] = field(default_factory=Counter[str])
    breaches: list[str] = field(default_factory=list[str])


def soak(stack: RunningStack, plan: SoakPlan, say: Callable[[str], None]) -> SoakReport:
    """Break a running stack under load for a while, let it come to rest, and judge what it did.

    Call it on the main thread: children die with the thread that started them.
    """
    report = SoakReport(plan.seed)
    tally = Tally()
    load = _Load(stack.url, plan, tally)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(load.run)
        try:
            _break_until(began + plan.seconds, stack, plan, report, tally, say)
        finally:
            load.stop()
        say("Letting the last conversations end.")
        _keep_up(stack, running.done, say)
        running.result()
    _await_rest(stack, say)
    report.seconds = time.monotonic() - began
    report.conversations, report.turns, report.retries = (
        tally.conversations,
        len(tally.accepted),
        tally.unreachable,
    )
    with snapshot(stack.stores.database_url) as connection:
        history = read_history(connection)
    report.breaches = tally.breaches + check(history, set(tally.accepted.values()))
    return report


class _Load:
    """The conversations, on an event loop of their own."""

    def __init__(self, url: str, plan: SoakPlan, tally: Tally) -> None:
        self._url = url
        self._plan = plan
        self._tally = tally
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()

    def run(self) -> None:
        """Talk until `stop` was called and every conversation has ended."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._talk())

    def stop(self) -> None:
        """From any thread: begin no further conversation."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def _talk(self) -> None:
        run = f"soak-{self._plan.seed}-{time.time_ns():x}"
        async with AsyncClient(self._url, _CLIENT_TIMEOUT_S) as client:
            bookers = [
                Booker(client, f"{run}-{number}", random.Random(f"{self._plan.seed}/{number}"), self._tally)
                for number in range(self._plan.sessions)
            ]
            await asyncio.gather(*(booker.keep_booking(self._stopping) for booker in bookers))


def _break_until(
    end: float,
    stack: RunningStack,
    plan: SoakPlan,
    report: SoakReport,
    tally: Tally,
    say: Callable[[str], None],
) -> None:
    chance = random.Random(plan.seed)
    broken = Broken(stack, chance)
    while (left := end - time.monotonic()) > 0:
        pause_ends = time.monotonic() + min(left, chance.expovariate(1 / plan.fault_every_s))
        _keep_up(stack, lambda until=pause_ends: time.monotonic() >= until, say)
        if time.monotonic() < end:
            name = break_something(broken)
            report.faults[name] += 1
            say(f"{name}; {tally.conversations} conversations, {len(tally.accepted)} turns so far.")


def _keep_up(stack: RunningStack, until: Callable[[], bool], say: Callable[[str], None]) -> None:
    """Start again what ends by itself, as `parley up` does."""
    watches = [Watch(child, started_at=time.monotonic()) for child in stack.children]
    while not until():
        for watch in watches:
            look(watch, time.monotonic(), say)
        time.sleep(_LOOK_EVERY_S)


def _await_rest(stack: RunningStack, say: Callable[[str], None]) -> None:
    """Wait until no turn is under way, those of the system included."""
    ends_at = time.monotonic() + _SETTLED_WITHIN_S
    _keep_up(stack, lambda: _is_at_rest(stack) or time.monotonic() > ends_at, say)


def _is_at_rest(stack: RunningStack) -> bool:
    try:
        with psycopg.connect(stack.stores.database_url, connect_timeout=5) as connection:
            found = connection.execute("SELECT 1 FROM turns WHERE finished_at IS NULL LIMIT 1").fetchone()
    except psycopg.OperationalError as error:
        raise Unavailable(f"The database did not come back: {error}") from error
    return found is None
