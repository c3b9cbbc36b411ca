"""Run a soak test: load on a separate thread, faults on the main thread, checks at the end."""

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import psycopg

from lab.soak.bookings import Booker, Tally
from lab.soak.checks import check, read_history, snapshot
from lab.soak.faults import Broken, break_something
from orchestrator.errors import Unavailable
from parley.stack import RunningStack
from parley.supervision import supervise
from parley_client import AsyncClient

_AT_REST_WITHIN_S = 180.0
_CLIENT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakPlan:
    """Options of a soak test.

    `seconds`: duration of the load. `sessions`: number of concurrent conversations. `fault_every_s`: mean number of
    seconds between faults.
    """

    seconds: float
    sessions: int
    fault_every_s: float
    seed: int


@dataclass(slots=True)
class SoakReport:
    """The result of a soak test.

    `retries`: number of requests repeated after Unavailable or InboxFull. `faults`: number of injected faults by
    name. `breaches`: broken guarantees.
    """

    seed: int
    seconds: float = 0.0
    conversations: int = 0
    turns: int = 0
    retries: int = 0
    faults: Counter[str] = field(default_factory=Counter[str])
    breaches: list[str] = field(default_factory=list[str])


def soak(
    stack: RunningStack,
    plan: SoakPlan,
    say: Callable[[str], None],
    counted: Callable[[int, int], None],
) -> SoakReport:
    """Inject faults into a running stack under load, wait until the stack is idle, and check its data.

    `counted`: called with the elapsed and total seconds. Call this function on the main thread, because child
    processes die with the thread that started them.
    """
    tally, stopping, faults = Tally(), threading.Event(), Counter[str]()
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(lambda: asyncio.run(_converse(stack.url, plan, tally, stopping)))
        try:
            _break_until(began + plan.seconds, stack, plan, tally, load, faults, say, counted)
        finally:
            stopping.set()
        say("Waiting for the last conversations to end.")
        supervise(stack.children, say, until=load.done)
        load.result()  # raises the error that ended the load early
    ends_at = time.monotonic() + _AT_REST_WITHIN_S
    supervise(stack.children, say, until=lambda: _is_at_rest(stack) or time.monotonic() > ends_at)
    seconds = time.monotonic() - began
    with snapshot(stack.stores.database_url) as connection:
        breaches = tally.breaches + check(read_history(connection), set(tally.accepted.values()))
    return SoakReport(
        plan.seed, seconds, tally.conversations, len(tally.accepted), tally.unreachable, faults, breaches
    )


async def _converse(url: str, plan: SoakPlan, tally: Tally, stopping: threading.Event) -> None:
    """Run conversations until `stopping` is set and all conversations have ended."""
    run = f"soak-{plan.seed}-{time.time_ns():x}"
    async with AsyncClient(url, _CLIENT_TIMEOUT_S) as client:
        bookers = [
            Booker(client, f"{run}-{number}", random.Random(f"{plan.seed}/{number}"), tally)
            for number in range(plan.sessions)
        ]
        await asyncio.gather(*(booker.keep_booking(stopping) for booker in bookers))


def _break_until(
    end: float,
    stack: RunningStack,
    plan: SoakPlan,
    tally: Tally,
    load: Future[None],
    faults: Counter[str],
    say: Callable[[str], None],
    counted: Callable[[int, int], None],
) -> None:
    chance = random.Random(plan.seed)
    while (left := end - time.monotonic()) > 0 and not load.done():
        counted(round(plan.seconds - left), round(plan.seconds))
        pause_ends = time.monotonic() + min(left, chance.expovariate(1 / plan.fault_every_s))
        supervise(stack.children, say, until=lambda at=pause_ends: time.monotonic() >= at or load.done())
        if time.monotonic() < end and not load.done():
            name = break_something(Broken(stack, chance))
            faults[name] += 1
            say(f"{name}; {tally.conversations} conversations, {len(tally.accepted)} turns so far.")


def _is_at_rest(stack: RunningStack) -> bool:
    """Return True if all turns, including system turns, have finished. Raises Unavailable if PostgreSQL is down."""
    try:
        with psycopg.connect(stack.stores.database_url, connect_timeout=5) as connection:
            found = connection.execute("SELECT 1 FROM turns WHERE finished_at IS NULL LIMIT 1").fetchone()
    except psycopg.OperationalError as error:
        raise Unavailable(f"The database did not recover: {error}") from error
    return found is None
