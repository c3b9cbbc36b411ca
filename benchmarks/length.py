"""Whether a turn's cost and the working state grow with the conversation: `make bench-length` (ST-3, RT-19).

Several sessions of the travel domain talk side by side on a real PostgreSQL, in this process, without a
model. The same round of turns is measured at several places of the conversation, as CPU time of this
process; each place is compared with the first.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.agent.lane import LaneRunner
from orchestrator.bootstrap import AgentCatalogue, Ports, build_agent, open_lane, open_ports
from orchestrator.settings import Settings
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.embedded import stores

ROUND = (
    "Show me flights from Oslo to Rome on Monday",
    "Book a flight to Madrid",
    "help",
    "Oslo",
    "what do you still need?",
    "next Friday",
    "in business class please",
    "yes",
    "Book a flight from Paris to London",
    "never mind, cancel that",
)
"""A search, a question aside, a booking with a correction and a yes, a task that is given up."""
PLACES = (10, 30, 60, 100, 250, 500, 1000)
"""Turns at which a round begins that is measured: multiples of the round's length."""
FULL_AT = 100
"""The turn by which everything that is bounded has met its bound."""
BAR = 1.2


@dataclass
class Measured:
    """CPU seconds per turn by its position in the round, and bytes of state after rounds."""

    cpu: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    size: list[int] = field(default_factory=list)

    @property
    def turn_us(self) -> float:
        """The mean over the round of each turn's median, in microseconds."""
        return 1e6 * statistics.mean(statistics.median(times) for times in self.cpu.values())

    @property
    def bytes(self) -> float:
        return statistics.median(self.size)


class Bench:
    """Sessions that have talked equally long."""

    def __init__(self, ports: Ports, runner: LaneRunner, sessions: int, name: str) -> None:
        self._ports = ports
        self._runner = runner
        self._sessions = [SessionId(f"{name}-{number}") for number in range(sessions)]

    async def talk(self, measured: Measured | None) -> None:
        """One round of every session."""
        for session in self._sessions:
            for position, text in enumerate(ROUND):
                await self._ports.inbox.submit(
                    Submission(
                        session, TurnInput(text=text), DEFAULT_TENANT, create_session=True, domain="travel"
                    )
                )
                began = time.process_time()
                await self._runner.run(session)
                if measured is not None:
                    measured.cpu[position].append(time.process_time() - began)
            if measured is not None:
                measured.size.append(await self._size(session))

    async def _size(self, session: SessionId) -> int:
        row = await self._ports.database.fetch_one(
            "SELECT octet_length(body) FROM states WHERE session_id = %(session)s",
            {"session": session},
        )
        assert row is not None
        return row[0]


async def main() -> int:
    arguments = _parse()
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder, stores(Path(folder)) as running:
        migrate(running.database_url)
        settings = Settings(DATABASE_URL=running.database_url, REDIS_URL=running.redis_url)
        async with open_ports(settings) as ports, open_lane(ports) as lane:
            agents = AgentCatalogue(build_agent, ports)
            runner = LaneRunner(lane, ports.live, ports.wakeup, agents.get)
            warm_up = Bench(ports, runner, 1, "warm-up")
            for _ in range(20):
                await warm_up.talk(None)
            results = await _measure(Bench(ports, runner, arguments.sessions, "long"), arguments.turns)
    return _report(results)


async def _measure(bench: Bench, turns: int) -> dict[int, Measured]:
    results = {place: Measured() for place in PLACES if place <= turns}
    for begun in range(0, turns + 1, len(ROUND)):
        gc.collect()
        await bench.talk(results.get(begun))
    return results


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m benchmarks.length")
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--turns", type=int, default=PLACES[-1], help="how long the conversations become")
    return parser.parse_args()


def _report(results: dict[int, Measured]) -> int:
    first = next(iter(results.values()))
    print(f"{'at turn':>8}{'CPU us per turn':>18}{'ratio':>8}{'bytes of state':>17}{'ratio':>8}")
    for place, measured in results.items():
        print(
            f"{place:8}{measured.turn_us:18.0f}{measured.turn_us / first.turn_us:8.2f}"
            f"{measured.bytes:17.0f}{measured.bytes / first.bytes:8.2f}"
        )
    place, last = list(results.items())[-1]
    full_at, full = next((p, m) for p, m in results.items() if p >= min(FULL_AT, place))
    ratios = {
        f"CPU per turn, turn {place} / turn {next(iter(results))}": last.turn_us / first.turn_us,
        f"bytes of state, turn {place} / turn {full_at}": last.bytes / full.bytes,
    }
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.2f} ({'within' if ratio <= BAR else 'outside'} the bar of {BAR})")
    print(
        f"The state fills up until turn {full_at}: it keeps 50 messages, 100 trace entries and 10 completed flows."
    )
    return 0 if max(ratios.values()) <= BAR else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
