"""A real worker on real stores with a failing model: turns use System 1, report this, and recover (NL-2, CO-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from orchestrator.bootstrap import Ports
from orchestrator.types import SessionId
from parley.testing.scripted_model import Drop, Fail, Hang, Raw, Reply, ScriptedModel
from tests.cases import for_each
from tests.conversation import run_turn
from tests.integration.chaos.fleet import Fleet, Worker, fleet
from tests.integration.modelled import TAPAS, script_of, travel_with, understood
from tests.redis_numbers import numbered

SYSTEM2 = {"mode": "system2"}
APPLICATION = "workers.app"
CITY = understood("slot_value", origin="Oslo")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return travel_with(tmp_path_factory.mktemp("domains"), nlu=SYSTEM2)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(script_of(CITY)) as running:
        yield running


@dataclass
class Talk:
    """A session of the real system, through its stores."""

    ports: Ports
    session: SessionId

    async def say(self, text: str) -> dict[str, Any]:
        """Submit a turn and return its finished turn object."""
        done = await run_turn(self.ports, self.session, text, "modelled", within_s=30)
        assert done.result is not None, done
        return done.result | {"status": done.status.value, "attempts": done.attempts}


@asynccontextmanager
async def talking(crew: Fleet, session: str, folder: Path) -> AsyncIterator[Talk]:
    async with crew.ports(PARLEY_DOMAIN=str(folder)) as ports:
        yield Talk(ports, SessionId(session))


def environment(model: ScriptedModel, folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of an endpoint without a key."""
    return {
        "PARLEY_DOMAIN": str(folder),
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "",
        "PARLEY_MODEL": "scripted",
        "PARLEY_LEASE_TTL_S": "3",
        "PARLEY_TURN_DEADLINE_S": "8",
        "PARLEY_SHUTDOWN_GRACE_S": "0.3",
        **more,
    }


def logged(worker: Worker, event: str) -> list[dict[str, Any]]:
    lines = (line for line in worker.log.read_text().splitlines() if line.startswith("{"))
    return [entry for entry in map(orjson.loads, lines) if entry.get("event") == event]


async def test_turns_go_on_without_the_model_and_return_to_it(
    database_url: str, redis_url: str, tmp_path: Path, folder: Path, model: ScriptedModel
) -> None:
    """NL-2, CO-2: killed during a conversation, then restarted."""
    settings = environment(model, folder, PARLEY_MODEL_FAILURES="2", PARLEY_MODEL_COOLING_S="4")
    with fleet(database_url, redis_url, tmp_path, settings) as crew:
        (worker,) = crew.start(1, application=APPLICATION)
        async with talking(crew, "interrupted", folder) as talk:
            asked = await talk.say(TAPAS)
            model.stop()
            fallen = await talk.say("Oslo")
            known = await talk.say("tomorrow")
            model.follow(script_of(understood("correction", "book_flight", date=next_monday())))
            model.start()
            back = await until_asked(talk, model)

        changes = [entry["state"] for entry in logged(worker, "A model's circuit breaker changed.")]
        calls = logged(worker, "A model call ended.")
        unanswered = logged(worker, "A model call failed.")

    assert (asked["status"], asked["flows"][-1]["slots"]) == ("done", {"destination": "MAD"})
    assert "degraded" not in asked["flags"]
    assert (fallen["status"], fallen["flags"]["degraded"]) == ("done", True)
    assert fallen["flows"][-1]["slots"] == {"destination": "MAD", "origin": "OSL"}
    assert (known["status"], known["flags"]["degraded"]) == ("done", True)
    assert "date" in known["flows"][-1]["slots"]
    assert known["flags"]["model_problem"] == "model_circuit_open"
    assert (back["status"], back["ambiguity"]["level"]) == ("done", "confirmation")
    assert changes[0] == "open"
    assert changes[-2:] == ["half_open", "closed"]
    assert {call["outcome"] for call in calls} == {"answered"}
    assert {call["outcome"] for call in unanswered} >= {"model_failed"}


def next_monday() -> str:
    """Return a travel day with free seats: next Monday, or in a week on Mondays."""
    today = datetime.now(UTC).date()
    return (today + timedelta(days=7 - today.weekday())).isoformat()


async def until_asked(talk: Talk, model: ScriptedModel) -> dict[str, Any]:
    """Send different messages until the model interprets again."""
    async with asyncio.timeout(40):
        for number in count():
            before = len(model.requests)
            turn = await talk.say(f"hm, let me think {number}")
            if "degraded" not in turn["flags"]:
                assert len(model.requests) > before
                return turn
            await asyncio.sleep(0.2)
    raise AssertionError


WEATHER: dict[str, Reply] = {
    "server error": Fail(500),
    "another protocol": Raw("<html>It works!</html>", "text/html"),
    "broken off": Drop(),
    "silent": Hang(),
}
"""`models/test_endings_in_turns.py` has more of them, without workers."""


@pytest.fixture(scope="module")
def unlucky(
    database_url: str, stores: Any, tmp_path_factory: pytest.TempPathFactory, folder: Path
) -> Iterator[tuple[Fleet, ScriptedModel]]:
    """Yield a worker for all failures. Its breaker never opens."""
    with ScriptedModel(script_of(CITY)) as model:
        settings = environment(model, folder, PARLEY_MODEL_FAILURES="1000", PARLEY_TURN_DEADLINE_S="4")
        with fleet(
            database_url, numbered(stores.redis_url, 8), tmp_path_factory.mktemp("logs"), settings
        ) as crew:
            crew.start(1, application=APPLICATION)
            yield crew, model


@for_each("weather", list(WEATHER))
async def test_the_turn_is_answered_in_every_weather(
    unlucky: tuple[Fleet, ScriptedModel], folder: Path, weather: str
) -> None:
    """NL-2, PX-9: within the turn's deadline, in the first attempt, by System 1."""
    crew, model = unlucky
    model.follow(script_of(WEATHER[weather]))
    async with talking(crew, f"weather-{weather.replace(' ', '-')}", folder) as talk:
        await talk.say(TAPAS)
        before = len(model.requests)
        turn = await talk.say("Oslo")

    assert (turn["status"], turn["attempts"]) == ("done", 1)
    assert turn["flags"]["degraded"] is True
    assert turn["flags"]["model_problem"]
    assert turn["flows"][-1]["slots"] == {"destination": "MAD", "origin": "OSL"}
    assert "What day" in turn["reply"]
    assert len(model.requests) > before


async def test_answers_are_steps_of_their_turns(
    unlucky: tuple[Fleet, ScriptedModel], folder: Path, database_url: str
) -> None:
    """RT-8: the step's name contains no message text."""
    crew, model = unlucky
    model.follow(script_of(CITY))
    async with talking(crew, "journaled", folder) as talk:
        turn = await talk.say(TAPAS)
    with psycopg.connect(database_url) as connection:
        query = "SELECT key, kind, status FROM journal WHERE turn_id = %s AND kind = 'model'"
        steps = connection.execute(query, [turn["turn_id"]]).fetchall()

    assert [(kind, status) for _, kind, status in steps] == [("model", "finished")]
    assert steps[0][0].startswith("model:nlu_think:")
    assert "tapas" not in steps[0][0]
