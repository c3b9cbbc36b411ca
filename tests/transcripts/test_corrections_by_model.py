"""Corrections interpreted by a model: the flow in the interpretation identifies the task."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from parley.simulator import Conversation
from parley.testing.scripted_model import Answer, Rule, Script
from tests.conversation import scripted
from tests.trained import converse

TRIP = {"origin": "Oslo", "destination": "Madrid", "date": "2026-11-27", "return_date": "2026-11-29"}


UNDO = "Undo it and do it again with Lisbon (LIS)"


def understood(kind: str, *dacts: str, target: str | None = None, **slots: str) -> Answer:
    flows = [{"dact": dact, "score": 0.9} for dact in dacts]
    target = target or ("the day" if kind == "correction" else None)
    return Answer(json={"kind": kind, "flows": flows, "slots": slots, "target": target, "digression": None})


SCRIPT = Script(
    rules=(
        Rule(
            match="^fly me", replies=(understood("task", "book_flight", origin="Oslo", destination="Madrid"),)
        ),
        Rule(match="^on Friday", replies=(understood("slot_value", "book_flight", date="2026-11-27"),)),
        Rule(match="^plan", replies=(understood("task", "plan_trip", **TRIP),)),
        Rule(match="^yes", replies=(understood("confirmation", "book_flight"),)),
        Rule(match="^Lisbon", replies=(understood("correction", "book_flight", destination="Lisbon"),)),
        Rule(match="^back", replies=(understood("correction", "plan_trip", return_date="2026-12-01"),)),
        Rule(match="^well, fix", replies=(understood("correction", target=UNDO),)),
        Rule(match="^what would", replies=(understood("correction", target=UNDO),)),
        Rule(match="^hands off", replies=(understood("slot_value", target="Leave it as it is"),)),
        Rule(match="^hm", replies=(understood("correction", target="compensate_effect"),)),
        Rule(match="^2$", replies=(understood("unknown"),)),
        Rule(prompt="plan_replan", replies=(Answer(json={"decision": "keep"}),)),
    )
)


@pytest.fixture
async def talk() -> AsyncIterator[Conversation]:
    async with scripted(SCRIPT) as (_, pool):
        sections = {"nlu": {"mode": "system2"}}
        yield converse("travel", models=pool, sections=sections)


async def test_a_correction_of_what_is_booked_asks_what_should_happen(talk: Conversation) -> None:
    """IR-4, RT-12, NL-7: no task is running, and the named flow was completed."""
    await talk.say("fly me from Oslo to Madrid")
    await talk.say("on Friday")
    await talk.say("yes")
    turn = await talk.say("Lisbon, I meant")
    assert [action["name"] for action in turn["actions"]] == [
        "keep_effect",
        "compensate_effect",
        "repeat_effect",
    ]
    assert turn["tools"] == []


async def test_a_number_chooses_an_option_whatever_a_model_would_make_of_it(talk: Conversation) -> None:
    """NL-2, RT-12: a model can't express a displayed option."""
    await talk.say("fly me from Oslo to Madrid")
    await talk.say("on Friday")
    await talk.say("yes")
    await talk.say("Lisbon, I meant")
    turn = await talk.say("2")
    assert [tool["tool_id"] for tool in turn["tools"]] == ["booking_cancel", "flight_offer"]


async def correct_what_is_booked(talk: Conversation) -> None:
    for words in ("fly me from Oslo to Madrid", "on Friday", "yes", "Lisbon, I meant"):
        await talk.say(words)


async def test_what_a_model_takes_for_a_decision_is_done_after_a_yes(talk: Conversation) -> None:
    """RT-12, PX-18: the model may be right."""
    await correct_what_is_booked(talk)
    turn = await talk.say("well, fix the booking accordingly")
    assert f"Do you mean “{UNDO}”?" in turn["reply"]
    assert turn["tools"] == []
    turn = await talk.say("yes")
    assert [tool["tool_id"] for tool in turn["tools"]] == ["booking_cancel", "flight_offer"]


@pytest.mark.parametrize("words", ["what would that cost me", "hm, compensate somehow"])
async def test_a_decision_that_nobody_made_undoes_nothing(talk: Conversation, words: str) -> None:
    """RT-12, PX-18: the model may be wrong, and name the question's subject or an unknown option."""
    await correct_what_is_booked(talk)
    assert (await talk.say(words))["tools"] == []
    turn = await talk.say("hands off what is booked")
    assert turn["tools"] == []
    assert "left it as it is" in turn["reply"]
