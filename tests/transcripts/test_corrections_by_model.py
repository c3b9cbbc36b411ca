"""Corrections that a model understands: they find their task by the flow that the model names."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from orchestrator.adapters.models.pool import ModelPool
from orchestrator.adapters.openai import Endpoint
from orchestrator.simulator import Conversation, Simulator
from orchestrator.testing.scripted_model import Answer, Rule, Script, ScriptedModel

TRIP = {"origin": "Oslo", "destination": "Madrid", "date": "2026-11-27", "return_date": "2026-11-29"}


def understood(kind: str, *dacts: str, **slots: str) -> Answer:
    flows = [{"dact": dact, "score": 0.9} for dact in dacts]
    target = "the day" if kind == "correction" else None
    return Answer(json={"kind": kind, "flows": flows, "slots": slots, "target": target, "digression": None})


SCRIPT = Script(
    rules=(
        Rule(
            match="^fly me", replies=(understood("task", "book_flight", origin="Oslo", destination="Madrid"),)
        ),
        Rule(match="^on Friday", replies=(understood("slot_value", "book_flight", date="2026-11-27"),)),
        Rule(match="^plan", replies=(understood("task", "plan_trip", **TRIP),)),
        Rule(match="^yes", replies=(understood("confirmation", "book_flight"),)),
        Rule(match="^Saturday", replies=(understood("correction", "book_flight", date="2026-11-28"),)),
        Rule(match="^back", replies=(understood("correction", "plan_trip", return_date="2026-12-01"),)),
        Rule(match="^2$", replies=(understood("unknown"),)),
        Rule(prompt="plan_replan", replies=(Answer(json={"decision": "keep"}),)),
    )
)


@pytest.fixture
async def talk() -> AsyncIterator[Conversation]:
    with ScriptedModel(SCRIPT) as model:
        pool = ModelPool({"default": Endpoint(base_url=model.base_url)}, model="scripted")
        yield Simulator.of("travel", models=pool, sections={"nlu": {"mode": "system2"}}).converse()
        await pool.aclose()


async def test_a_correction_of_what_is_booked_asks_what_should_happen(talk: Conversation) -> None:
    """IR-4, RT-12, NL-7: nothing is at work any more, and the flow that is named was completed."""
    await talk.say("fly me from Oslo to Madrid")
    await talk.say("on Friday")
    await talk.say("yes")
    turn = await talk.say("Saturday, I meant")
    assert [action["name"] for action in turn["actions"]] == [
        "keep_effect",
        "compensate_effect",
        "repeat_effect",
    ]
    assert turn["tools"] == []


async def test_a_number_chooses_an_option_whatever_a_model_would_make_of_it(talk: Conversation) -> None:
    """NL-2, RT-12: a model has no words for an option that was displayed."""
    await talk.say("fly me from Oslo to Madrid")
    await talk.say("on Friday")
    await talk.say("yes")
    await talk.say("Saturday, I meant")
    turn = await talk.say("2")
    assert [tool["tool_id"] for tool in turn["tools"]] == ["booking_cancel", "flight_offer"]
