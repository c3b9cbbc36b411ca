"""Measure the cost of one Celery message per turn: ``python -m benchmarks.messages``.

The benchmark compares `benchmarks.echo`, whose workers claim ready sessions, with a variant that sends a task for each
turn. The closed loop and the drain are the same as in `benchmarks.turns`. Rounds are interleaved, and each ratio
compares measurements of the same round.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from celery import Celery  # pyright: ignore[reportMissingTypeStubs]

from benchmarks.candidates import Candidate, Ours, run_ours
from benchmarks.environment import Report, open_stores, own_stores, parse
from benchmarks.turns import measure
from orchestrator.adapters.redis.address import for_celery
from orchestrator.ports.tasks import RUN_SESSION, TURNS
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import DEFAULT_TENANT, SessionId
from parley.embedded import Stores
from parley.output import progress

ECHO, EACH = "echo", "a message a turn"
BAR = 1.1
"""Maximum ratio of the variant's time per turn to that of `benchmarks.echo`."""


@dataclass
class Messages(Ours):
    """Parley's production path, with a separate Celery message for each turn instead of a wake-up."""

    sender: Celery

    async def submit(self, session: str, text: str) -> str:
        submission = Submission(SessionId(session), TurnInput(text=text), DEFAULT_TENANT)
        receipt = await self.ports.stores.inbox.submit(submission)
        self.sender.send_task(RUN_SESSION, args=[session], queue=TURNS, ignore_result=True)
        return receipt.turn_id


@asynccontextmanager
async def run_each(running: Stores, folder: Path) -> AsyncIterator[list[Candidate]]:
    async with AsyncExitStack() as stack:
        own = [own_stores(running, number) for number in range(2)]
        echo = await stack.enter_async_context(
            run_ours(own[0], folder, name=ECHO, application="benchmarks.echo", domain="echo")
        )
        each = await stack.enter_async_context(
            run_ours(own[1], folder, name=EACH, application="benchmarks.echo_messages", domain="echo")
        )
        sender = stack.enter_context(Celery("messages", broker=for_celery(own[1].redis_url)))
        yield [echo, Messages(each.ports, each.workers, EACH, each.domain, sender)]


async def main() -> int:
    arguments = parse(
        "benchmarks.messages",
        __doc__,
        rounds=(3, "rounds of the closed loop and of the drain"),
        turns=(200, "turns per session in the closed loop"),
        queued=(10, "waiting turns per session"),
        bar=(BAR, "maximum ratio to the time of a turn; exits with 1 above it"),
    )
    with open_stores() as (running, folder):
        async with run_each(running, folder) as candidates:
            with progress("phases") as counted:
                results = await measure(
                    candidates, arguments.rounds, arguments.turns, arguments.queued, counted=counted
                )
    report = Report("messages", as_json=arguments.json)
    rows: list[dict[str, Any]] = [
        {
            "phase": phase,
            "candidate": name,
            "turns/s": median(one.rate for one in rounds),
            "worker CPU us": median(one.cpu_us("worker") for one in rounds),
        }
        for (phase, name), rounds in sorted(results.items())
    ]
    report.rows("rates", rows)
    kept = True
    for phase in ("closed loop", "drain"):
        pairs = zip(results[phase, ECHO], results[phase, EACH], strict=True)
        ratio = median(echo.rate / each.rate for echo, each in pairs)
        kept &= report.verdict(f"{phase}: time of a turn, {EACH} / {ECHO}", ratio, arguments.bar)
    report.end()
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
