"""Messages with policy `understand` at random moments of a turn, on real workers and stores (RT-5, RT-25).

A turn makes a call without side effects, then two with side effects, which an external service counts. The
table in `docs/interruptions.md` defines the expected store, calls and replies.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapters.postgres.turns.archive import PostgresArchive
from orchestrator.turns.turn import IfBusy, TurnRecord, TurnStatus
from orchestrator.types import DEFAULT_TENANT, SessionId
from tests.integration.chaos.errands import served
from tests.integration.chaos.fleet import fleet
from tests.integration.chaos.test_stopped_workers import APPLICATION, SERVICES, Setting
from tests.unit.interruptions.judge import ASK, SAID, Outcome, find_faults
from tests.unit.interruptions.setting import write_mailroom

CALL_S = 0.4
"""Duration of each of the three calls, in seconds."""
STAGES = ("accepted", "letters", "label", "parcel")
"""Event that starts the clock of a moment, so that each stage is reached on slow machines."""
LAST_MOMENT_S = CALL_S + 0.1
"""Time limit until the next stage, in seconds."""
AT_ONCE = 14
WITHIN_S = 120
KEYS = {"label": "tool:parcel_label:1", "parcel": "tool:parcel_send:1"}


class Outside:
    """A counter of calls by session, kind and recipient, at their start."""

    def __init__(self) -> None:
        self.url = ""
        self.call_s = CALL_S
        self.calls: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
        self.reached: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def serve(self, path: str, body: dict[str, Any]) -> Any:
        if "recipient" in body:
            with self._lock:
                self.calls[body["session"]][path, body["recipient"]] += 1
        self.reached.add((body["session"], path))
        time.sleep(self.call_s)
        return {}


@asynccontextmanager
async def mailroom(database_url: str, redis_url: str, folder: Path, world: Outside) -> AsyncIterator[Setting]:
    domain = write_mailroom(folder / "mailroom")
    (domain / "services.py").write_bytes(SERVICES.read_bytes())
    with served(world):
        environment = {"PARLEY_DOMAIN": str(domain), "MAILROOM_URL": world.url}
        with fleet(database_url, redis_url, folder, environment) as crew:
            await asyncio.to_thread(crew.start, application=APPLICATION)
            async with crew.ports(PARLEY_DOMAIN=str(domain)) as ports:
                yield Setting(ports, crew, world, 120.0)  # type: ignore[arg-type]  # it is asked for its calls only


async def interrupt(
    setting: Setting, kind: str, session: str, text: str, stage: str, after_s: float
) -> Outcome:
    """Send a message some time after a turn has reached a stage, and return both results."""
    first = await setting.submit(session, ASK)
    world: Outside = setting.world  # type: ignore[assignment]  # `mailroom` has put it there
    async with asyncio.timeout(WITHIN_S):
        while stage != STAGES[0] and (session, stage) not in world.reached:
            await asyncio.sleep(0.01)
    await asyncio.sleep(after_s)
    second = await setting.submit(session, text, IfBusy.UNDERSTAND)
    turns = await setting.ended(session, first), await setting.ended(session, second)
    return await outcome_of(setting, kind, session, *turns)


async def outcome_of(
    setting: Setting, kind: str, session: str, first: TurnRecord, second: TurnRecord
) -> Outcome:
    """Return the results of two turns."""
    journal = PostgresArchive(setting.ports.stores.database)
    steps = await journal.journal(DEFAULT_TENANT, SessionId(session), turn_id=first.turn_id)
    at = {step["key"]: datetime.fromisoformat(step["at"]) for step in steps}
    begun = {name: at[key] for name, key in KEYS.items() if key in at}
    return Outcome(kind, first, second, begun, setting.world.calls[session])  # type: ignore[index,arg-type]


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("times", [6, pytest.param(300, marks=pytest.mark.slow)], ids=["few", "many"])
async def test_interruptions_of_each_kind_come_to_what_the_table_says(
    times: int, database_url: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance, world = random.Random(9), Outside()
    planned = [
        (
            kind,
            f"{kind}-{number}",
            chance.choice(SAID[kind]),
            STAGES[number % len(STAGES)],
            chance.uniform(0, LAST_MOMENT_S),
        )
        for number in range(times)
        for kind in SAID
    ]
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(plan: tuple[str, str, str, str, float]) -> Outcome:
        async with limit:
            return await interrupt(setting, *plan)

    async with mailroom(database_url, redis_url, tmp_path, world) as setting:
        outcomes = await asyncio.gather(*(one(plan) for plan in planned))

    faults = {
        plan: found
        for plan, outcome in zip(planned, outcomes, strict=True)
        if (found := find_faults(outcome))
    }
    in_time = Counter(f"{outcome.kind}: {outcome.in_time}" for outcome in outcomes)
    with capsys.disabled():
        print(
            f"\n{len(outcomes)} interruptions, {len(faults)} otherwise than the table says; {dict(in_time)}"
        )
    assert faults == {}
    assert {word for entry in in_time if (word := entry.split(": ")[1])} == {"all", "some", "none"}


@pytest.mark.timeout(300)
async def test_a_message_is_heard_within_moments_of_a_long_call(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    """Bounded delay: a call without side effects is interrupted."""
    world = Outside()
    world.call_s = 20.0
    async with mailroom(database_url, redis_url, tmp_path, world) as setting:
        text = "never mind"
        first = await setting.submit(text, ASK)
        await asyncio.sleep(0.5)
        began = time.monotonic()
        second = await setting.submit(text, text, IfBusy.UNDERSTAND)
        assert (await setting.ended(text, second)).status is TurnStatus.DONE
        assert time.monotonic() - began < world.call_s / 2, "it is looked at every second"
        assert (await setting.ports.stores.inbox.turn(DEFAULT_TENANT, first)).status is TurnStatus.CANCELLED
    assert world.calls["never mind"] == {}
