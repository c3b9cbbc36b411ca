"""Measure how turn cost and state size grow with a conversation: `make bench-length` (ST-3, RT-19).

Sessions of the travel domain run in this process, with PostgreSQL but without a model. The benchmark measures the CPU
time of the same round of turns at several points in the conversation. Each measured turn alternates with the same
turn of a young session, so that other work on the machine slows down both turns.
"""

import asyncio
import gc
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import orjson

from benchmarks.environment import Report, open_lanes, open_stores, parse
from orchestrator.bootstrap import Ports
from orchestrator.runtime.lane import LaneRunner
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.output import progress

ROUND = (
    "Show me flights from Oslo to Rome on Monday",
    "Book a flight to Madrid",
    "help",
    "Oslo",
    "what do you still need?",
    "next Friday",
    "in business class please",
    "yes",
    "cancel my booking",
    "yes",
)
"""The messages of a round, which books a flight and cancels the booking to free the seats for the next round."""
PLACES = (10, 30, 60, 100, 250, 500, 1000)
"""Numbers of turns before the measured rounds. All are multiples of the round's length."""
FULL_AT = 100
"""Number of turns after which all limits on the state's size apply."""
BAR = 1.2


@dataclass
class Measured:
    """Measurements of rounds.

    `cpu`: CPU seconds of turns, by position in the round. `size`: size of the state after each round, in bytes.
    """

    cpu: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    size: list[int] = field(default_factory=list)

    @property
    def turn_us(self) -> float:
        """Return the CPU time per turn in microseconds: the mean of the medians for each position in the round."""
        return 1e6 * statistics.mean(statistics.median(times) for times in self.cpu.values())

    @property
    def bytes(self) -> float:
        return statistics.median(self.size)


@dataclass
class Place:
    """Measurements of old sessions at one point in the conversation, and of the paired young sessions."""

    old: Measured = field(default_factory=Measured)
    young: Measured = field(default_factory=Measured)

    @property
    def ratio(self) -> float:
        return self.old.turn_us / self.young.turn_us


class Bench:
    def __init__(self, ports: Ports, runner: LaneRunner) -> None:
        self._ports = ports
        self._runner = runner

    async def talk(self, session: SessionId) -> None:
        for text in ROUND:
            await self._turn(session, text)

    async def compare(self, old: SessionId, young: SessionId, place: Place) -> None:
        """Run one round in both sessions, alternating between them after each turn. Add the measurements to `place`."""
        for position, text in enumerate(ROUND):
            place.old.cpu[position].append(await self._turn(old, text))
            place.young.cpu[position].append(await self._turn(young, text))
        place.old.size.append(await self._size(old))
        place.young.size.append(await self._size(young))

    async def _turn(self, session: SessionId, text: str) -> float:
        """Run a turn and return the CPU seconds from claim to commit."""
        turn = Submission(session, TurnInput(text=text), DEFAULT_TENANT, create_session=True, domain="travel")
        await self._ports.stores.inbox.submit(turn)
        began = time.process_time()
        await self._runner.run(session)
        return time.process_time() - began

    async def _size(self, session: SessionId) -> int:
        record = await self._ports.stores.sessions.get(DEFAULT_TENANT, session)
        return len(orjson.dumps(record.state))


async def main() -> int:
    arguments = parse(
        "benchmarks.length",
        __doc__,
        sessions=(10, "conversations"),
        turns=(PLACES[-1], "turns per conversation"),
    )
    with open_stores() as (running, _):
        async with open_lanes(running) as (ports, runner):
            with progress("turns of each session") as counted:
                results = await _measure(Bench(ports, runner), arguments.sessions, arguments.turns, counted)
    return _report(results, Report("length", as_json=arguments.json))


async def _measure(
    bench: Bench, sessions: int, turns: int, counted: Callable[[int, int], None]
) -> dict[int, Place]:
    results = {place: Place() for place in PLACES if place <= turns}
    for _ in range(20):
        await bench.talk(SessionId("warm-up"))
    for begun in range(0, turns + 1, len(ROUND)):
        gc.collect()
        counted(begun, turns)
        for number in range(sessions):
            old = SessionId(f"old-{number}")
            if begun not in results:
                await bench.talk(old)
                continue
            young = SessionId(f"young-{begun}-{number}")
            await bench.talk(young)
            await bench.compare(old, young, results[begun])
    return results


def _report(results: dict[int, Place], report: Report) -> int:
    report.rows(
        "places",
        [
            {
                "at turn": turn,
                "CPU us per turn": place.old.turn_us,
                "at turn 10": place.young.turn_us,
                "ratio": place.ratio,
                "bytes of state": place.old.bytes,
                "ratio of bytes": place.old.bytes / place.young.bytes,
            }
            for turn, place in results.items()
        ],
    )
    turn, last = list(results.items())[-1]
    full_at, full = next((t, p) for t, p in results.items() if t >= min(FULL_AT, turn))
    ratios = {
        f"CPU per turn, turn {turn} / turn 10": last.ratio,
        f"bytes of state, turn {turn} / turn {full_at}": last.old.bytes / full.old.bytes,
    }
    # Up to FULL_AT, the state grows to its limits: 50 messages, 100 trace entries, 10 completed flows.
    kept = [report.verdict(name, ratio, BAR) for name, ratio in ratios.items()]
    report.end()
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
