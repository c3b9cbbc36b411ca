"""Workers killed before, in and after each step of a skill: an effect happens once, or a user is asked.

RT-8, RT-9, RT-10, AM-3, PX-5: an external counting service verifies this. The skill's model is called over
HTTP, and never again for a recorded answer.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import psycopg
import pytest

from orchestrator.bootstrap import open_ports
from orchestrator.settings import Settings
from orchestrator.turns.turn import TurnRecord, TurnStatus
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId
from parley.testing.scripted_model import Computed, Rule, Script, ScriptedModel
from tests.conversation import run_turn
from tests.integration.chaos.errands import COMMIT, POINTS, SERVED, Outside, outside
from tests.integration.chaos.suspicion import suspect_nobody
from tests.processes.forked import start

ROOT = Path(__file__).resolve().parents[3]
DOMAIN = ROOT / "tests" / "domains" / "errands"
WORKERS = 2
MOST_QUESTIONS = 5
MOST_ROUNDS = 4
CRASHES = 300
LONGEST_TURN_S = 600
"""Deadline of a turn. A crash ends every turn of its process, so that a storm can hit a turn repeatedly."""
UNDECIDED = {
    "tool:errand_send:1/recorded",
    "tool:errand_send:1/in flight",
    "tool:errand_send:1/answered",
}
"""Points with an unknown outcome, because the service can't be queried."""

DECISIVE = (
    "model:2/answered",
    *(f"tool:errand_pay:1/{moment}" for moment in ("recorded", "in flight", "answered", "after")),
    "tool:errand_send:1/in flight",
    COMMIT,
)
"""The short form: a model's answer, the paying call, an unknown outcome, and the commit."""


@contextmanager
def replaced_workers(environment: Mapping[str, str], log: Path) -> Iterator[None]:
    """Yield workers that are replaced when they die. No worker remains afterwards."""
    parent = start(
        ["-m", "tests.integration.chaos.processes.replaced_workers", str(WORKERS)],
        environment={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        log=log,
    )
    try:
        yield
        assert parent.poll() is None, log.read_text()[-3000:]
    finally:
        parent.send_signal(signal.SIGTERM)
        parent.wait(30)


class Errands:
    """A runner of errands in their own sessions, which checks the results."""

    def __init__(self, database_url: str, redis_url: str, world: Outside) -> None:
        self._settings = Settings(DATABASE_URL=database_url, REDIS_URL=redis_url, PARLEY_DOMAIN=str(DOMAIN))
        self.world = world

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Errands]:
        async with open_ports(self._settings) as ports:
            self._ports = ports
            yield self

    async def say(self, code: str, text: str, *, within_s: float = LONGEST_TURN_S) -> TurnRecord:
        """Run a turn in the errand's session."""
        return await run_turn(self._ports, f"session-{code}", text, within_s=within_s)

    async def ledger(self, code: str) -> dict[str, str]:
        entries = await self._ports.stores.effects.list(DEFAULT_TENANT, SessionId(f"session-{code}"))
        return {entry.tool_id: entry.status.value for entry in entries}

    async def run(self, code: str, points: list[str]) -> JsonObject:
        """Run an errand whose workers die at these points, and return the turn's result."""
        self.world.plan(code, points)
        turn = await self.say(code, f"run errand {code}")
        assert turn.status is TurnStatus.DONE, (code, points, turn)
        assert turn.result is not None
        return turn.result


async def check_once(errands: Errands, code: str, result: JsonObject, points: list[str]) -> bool:
    """Check that each effect happened once, or that a user was asked about an unknown outcome.

    Return True if a user was asked. Only unrecorded calls of the model and of the idempotent tool may be
    repeated.
    """
    world = errands.world
    repeatable = {f"model:{number}": f"model:{number}" for number in range(1, 5)} | {"look": SERVED["look"]}
    for called, step in repeatable.items():
        times, broken = world.calls[called, code], world.broken_off[code, step]
        assert times <= 1 + broken, (code, points, f"{step}: called {times} times, broken off {broken}")
    assert world.effects("pay", code) == 1, (code, points, result["reply"])
    assert world.effects("send", code) <= 1, (code, points, result["reply"])
    if result["completed"] == ["run_errand"]:
        assert world.effects("send", code) == 1, (code, points)
        assert await errands.ledger(code) == {"errand_pay": "done", "errand_send": "done"}, (code, points)
        return False
    assert result["ambiguity"]["level"] == "confirmation", (code, points, result)
    assert "Send the errand off" in result["reply"], result["reply"]
    assert code in world.undecidable, (code, points, result["reply"])
    return True


async def answer_question(errands: Errands, code: str) -> None:
    """Answer like a user who has checked: yes only if the message was never sent."""
    world = errands.world
    world.plan(code, [])
    for _ in range(MOST_QUESTIONS):
        left = world.effects("send", code)
        turn = await errands.say(code, "no" if left else "yes")
        assert turn.result is not None
        if not turn.result["flows"]:
            break  # otherwise its worker was killed for another errand while sending the message
        assert "Send the errand off" in turn.result["reply"], turn.result["reply"]
    else:
        pytest.fail(f"asked {MOST_QUESTIONS} times about {code}")
    assert world.effects("send", code) == 1, turn.result["reply"]
    assert turn.result["completed"] == ([] if left else ["run_errand"])
    known = (await errands.ledger(code))["errand_send"]
    assert known == "done" if not left else known in {"started", "unknown"}


def skilled_by(world: Outside) -> Script:
    return Script(rules=(Rule(prompt="pex_skill", replies=(Computed(world.answer_skill),)),))


@asynccontextmanager
async def setting(database_url: str, redis_url: str, log: Path) -> AsyncIterator[Errands]:
    suspect_nobody(database_url)
    with outside() as world, ScriptedModel(skilled_by(world)) as model:
        environment = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "PARLEY_DOMAIN": str(DOMAIN),
            "PARLEY_MAX_ATTEMPTS": "500",
            "PARLEY_TURN_DEADLINE_S": str(LONGEST_TURN_S),
            "PARLEY_SWEEP_EVERY_S": "0.1",
            "PARLEY_SWEEP_GRACE_S": "0.1",
            "ERRANDS_URL": world.url,
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none",
            "PARLEY_MODEL": "scripted",
        }
        with replaced_workers(environment, log):
            async with Errands(database_url, redis_url, world).open() as errands:
                yield errands


async def _storm(errands: Errands, plans: Mapping[str, list[str]], *, at_once: int) -> int:
    """Run all errands, and return the number that ended with a question."""
    gate = asyncio.Semaphore(at_once)

    async def one(code: str, points: list[str]) -> bool:
        async with gate:
            result = await errands.run(code, points)
            asked = await check_once(errands, code, result, points)
            if asked:
                await answer_question(errands, code)
            return asked

    return sum(await asyncio.gather(*(one(code, points) for code, points in plans.items())))


def count_duplicates(database_url: str) -> int:
    """Count ledger entries for the same effect of the same turn."""
    query = "SELECT count(*) FROM (SELECT 1 FROM effects GROUP BY session_id, tool_id HAVING count(*) > 1) d"
    with psycopg.connect(database_url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(
    "points", [DECISIVE, pytest.param(POINTS, marks=pytest.mark.slow)], ids=["decisive", "all"]
)
async def test_each_point_of_a_step(
    database_url: str, redis_url: str, tmp_path: Path, points: tuple[str, ...]
) -> None:
    """One crash at each point, each in its own session."""
    async with setting(database_url, redis_url, tmp_path / "workers.log") as errands:
        kills = errands.world.kills
        asked = 0
        for round_ in range(MOST_ROUNDS):
            # a crash for another errand may skip a point, which is then tried again
            plans = {
                f"E1{round_}{number:02}": [point] for number, point in enumerate(points) if not kills[point]
            }
            asked += await _storm(errands, plans, at_once=6)

        assert set(kills) >= set(points)
        assert asked >= len(UNDECIDED & {*points})
        assert count_duplicates(database_url) == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_hundreds_of_crashes(
    database_url: str, redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At least 300 crashes, several within one turn."""
    chance = random.Random(11)
    asked = turns = 0
    async with setting(database_url, redis_url, tmp_path / "workers.log") as errands:
        kills = errands.world.kills
        while kills.total() < CRASHES:
            plans = {f"E{2000 + turns + number}": _choose_points(chance) for number in range(20)}
            asked += await _storm(errands, plans, at_once=4)
            turns += len(plans)

    with capsys.disabled():
        print(f"\n{kills.total()} crashes in {turns} turns; {asked} of them ended in a question")
    assert set(kills) == set(POINTS)
    assert count_duplicates(database_url) == 0


def _choose_points(chance: random.Random) -> list[str]:
    points = sorted(chance.sample(POINTS[:-1], chance.randint(1, 5)), key=POINTS.index)
    return [*points, COMMIT]
