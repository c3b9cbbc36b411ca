"""RT-29: one time per turn, fixed at acceptance, in the user's time zone and formats."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.domain.locales import forms_in_use
from orchestrator.errors import LaneLost
from orchestrator.turns.turn import TurnInput
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TurnId
from parley.simulator import Conversation, Simulator
from parley.testing.lane import MemoryLane
from tests.trained import simulate
from tests.unit.running import Turns, runner_of

MIDNIGHT = datetime(2026, 11, 21, 0, 0, tzinfo=UTC)
SEARCH = "find flights from Oslo to Madrid tomorrow"
SESSION = SessionId("late")


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    """Reset the formats after each test."""
    token = forms_in_use.set(None)
    yield
    forms_in_use.reset(token)


def begin(at: datetime, **sections: Any) -> Simulator:
    return simulate("travel", at=at, sections=sections or None)


async def accept(simulator: Simulator, text: str, **more: Any) -> TurnId:
    return await Turns(simulator, SESSION).submit(TurnInput(text, **more))


async def run(simulator: Simulator, lane: MemoryLane | None = None) -> None:
    await runner_of(simulator, lane).run(SESSION)


async def result_of(simulator: Simulator, turn_id: TurnId) -> JsonObject:
    turn = await Turns(simulator, SESSION).read(turn_id)
    assert turn.result is not None, turn
    return turn.result


def searched_day(result: JsonObject) -> str:
    (used,) = [used for used in result["tools"] if used["tool_id"] == "flight_search"]
    return used["arguments"]["day"]


async def test_tomorrow_is_counted_from_when_it_was_said() -> None:
    """A backlog delays the turn until the next day."""
    simulator = begin(MIDNIGHT - timedelta(seconds=10))
    turn_id = await accept(simulator, SEARCH)
    simulator.now = (MIDNIGHT + timedelta(hours=3)).timestamp()

    await run(simulator)

    assert searched_day(await result_of(simulator, turn_id)) == "2026-11-21"


class LosingLane(MemoryLane):
    """A lane that loses its turn after the first recorded call, as if its worker had died."""

    async def record(self, *arguments: Any, **more: Any) -> Any:
        recorded = await super().record(*arguments, **more)
        if arguments[2].status.value == "finished":
            self.die()
            raise LaneLost("The worker is gone.")
        return recorded


async def test_a_takeover_across_midnight_goes_on_where_the_first_worker_was() -> None:
    """The second attempt makes the same calls, and finds their results in the journal."""
    simulator = begin(MIDNIGHT - timedelta(seconds=1))
    turn_id = await accept(simulator, SEARCH)
    await run(simulator, LosingLane(simulator.store))
    journal = dict(simulator.store.turn(DEFAULT_TENANT, turn_id)[1].steps)
    assert [step for step in journal if step.startswith("tool:flight_search")]

    simulator.now = (MIDNIGHT + timedelta(seconds=1)).timestamp()
    await MemoryLane(simulator.store).sweep(grace_s=0)
    await run(simulator)

    result = await result_of(simulator, turn_id)
    assert searched_day(result) == "2026-11-21"
    assert "went wrong" not in result["reply"]
    steps = simulator.store.turn(DEFAULT_TENANT, turn_id)[1].steps
    assert {key: steps[key] for key in journal} == journal


@pytest.mark.parametrize(
    ("zone", "day"),
    [("Pacific/Auckland", "2026-11-22"), ("America/New_York", "2026-11-21"), (None, "2026-11-21")],
)
async def test_today_is_that_of_the_users_own_clock(zone: str | None, day: str) -> None:
    """11:30 p.m. in London is the next day in Auckland."""
    simulator = begin(datetime(2026, 11, 20, 23, 30, tzinfo=UTC))
    turn_id = await accept(simulator, SEARCH, timezone=zone)

    await run(simulator)

    assert searched_day(await result_of(simulator, turn_id)) == day


async def test_a_session_keeps_the_zone_that_a_turn_named() -> None:
    simulator = begin(datetime(2026, 11, 20, 23, 30, tzinfo=UTC))
    await accept(simulator, "hello", timezone="Pacific/Auckland")
    turn_id = await accept(simulator, SEARCH)

    await run(simulator)

    assert searched_day(await result_of(simulator, turn_id)) == "2026-11-22"


@pytest.mark.parametrize(
    ("hours", "day"),
    [(0, "2026-10-25"), (2, "2026-10-26")],
    ids=["the last half hour of the day before", "the night itself, still summer time"],
)
async def test_the_night_of_a_clock_change_has_one_today(hours: int, day: str) -> None:
    """24 October 2026, 23:30 in Berlin is 21:30 UTC. Two hours later, it is the 25th in Berlin but not in UTC."""
    simulator = begin(
        datetime(2026, 10, 24, 21, 30, tzinfo=UTC) + timedelta(hours=hours),
        session={"timezone": "Europe/Berlin"},
    )
    turn_id = await accept(simulator, SEARCH)

    await run(simulator)

    assert searched_day(await result_of(simulator, turn_id)) == day


async def offer(locale: str | None) -> str:
    simulator = begin(datetime(2026, 11, 20, 12, 0, tzinfo=UTC))
    talk: Conversation = simulator.converse()
    turn = await talk.submit(
        TurnInput(
            text="book a business flight from Oslo to Madrid on 27 November for 4 people", locale=locale
        )
    )
    return turn["reply"]


async def test_answers_have_the_forms_of_the_users_locale() -> None:
    """Day names are in the answer's language. Their order and all numbers follow the locale."""
    plain, german, american = [await offer(locale) for locale in (None, "de-DE", "en-US")]

    assert "Friday 27 November" in plain
    assert "€" in plain
    assert "Friday, 27 November" in german
    assert "\N{NO-BREAK SPACE}€" in german
    assert "Friday, November 27" in american
    assert [text.count("Madrid") for text in (german, american)] == [plain.count("Madrid")] * 2
