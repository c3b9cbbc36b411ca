"""Decomposition by a model, for words that fit no slot of the plan, or always if configured (PL-1, PL-5)."""

from __future__ import annotations

from typing import Any

import pytest

from parley.testing.scripted_model import Answer, Computed, Fail
from tests.integration.models.staging import rules, staged

FITTING = "plan a trip from Oslo to Madrid from 4 december to 8 december for 2 under 2000 euros"
BACK = ", but look for the return flight first"
KEEP = Answer(json={"decision": "keep"})
MET = Answer(json={"complete": True, "missing": [], "summary": "That is all."})


def found(dact: str, origin: str, destination: str, date: str) -> dict[str, Any]:
    slots = {"origin": origin, "destination": destination, "date": date}
    return {"dact": dact, "slots": slots, "purpose": f"look from {origin} to {destination}"}


BACK_FIRST = Answer(
    json={
        "steps": [
            found("search_flights", "Madrid", "Oslo", "2026-12-08"),
            found("search_flights", "Oslo", "Madrid", "2026-12-04"),
        ]
    }
)


def understood(*beyond: str, **slots: str) -> Answer:
    flows = [{"dact": "plan_trip", "score": 0.95}]
    return Answer(json={"kind": "task", "flows": flows, "slots": slots, "not_understood": [*beyond]})


TRIP = {"origin": "Oslo", "destination": "Madrid", "date": "2026-12-04", "return_date": "2026-12-08"}


async def ask(
    *texts: str, plans: dict[str, str] | None = None, mode: str = "system1", **replies: Any
) -> tuple[list[dict[str, Any]], list[str | None]]:
    script = rules(**({"plan_decompose": BACK_FIRST, "plan_replan": KEEP, "plan_complete": MET} | replies))
    sections = {
        "nlu": {"mode": mode, "slot_fill": "off"},
        "generation": {"naturalize": "off"},
        "plans": plans or {},
    }
    async with staged(script, **sections) as stage:
        talk = stage.simulator.converse(user_id="ada")
        turns = [await talk.say(text) for text in texts]
        return turns, [request.prompt_id for request in stage.model.requests]


def searched(turn: dict[str, Any]) -> list[str]:
    return [tool["arguments"]["origin"] for tool in turn["tools"] if "origin" in tool["arguments"]]


@pytest.mark.parametrize(("mode", "read"), [("system1", understood(**TRIP)), ("auto", understood(**TRIP))])
async def test_declared_steps_are_not_decomposed_by_a_model(mode: str, read: Answer) -> None:
    _, asked = await ask(FITTING, mode=mode, nlu_think=read)

    assert "plan_decompose" not in asked


async def test_words_that_fit_no_slot_are_for_the_planner() -> None:
    """PL-5, NL-9: the interpreting model reports them, and they are not reported as not understood."""
    [turn], asked = await ask(
        FITTING + BACK, mode="auto", nlu_think=understood("return flight first", **TRIP)
    )

    assert asked[:2] == ["nlu_think", "plan_decompose"]
    assert searched(turn) == ["MAD", "OSL"]
    assert "understand" not in turn["reply"]


async def test_words_for_the_planner_wait_for_the_values_of_the_plan() -> None:
    first = understood("return flight first", **{n: v for n, v in TRIP.items() if n != "return_date"})
    then = Answer(json={"kind": "slot_value", "flows": [], "slots": {"return_date": "2026-12-08"}})
    read = Computed(lambda request: then if request.said == "8 december" else first)
    turns, asked = await ask(
        "plan a trip from Oslo to Madrid on 4 december" + BACK, "8 december", mode="auto", nlu_think=read
    )

    assert "come back" in turns[0]["reply"]
    assert asked.count("plan_decompose") == 1
    assert searched(turns[1]) == ["MAD", "OSL"]


@pytest.mark.parametrize(
    ("plans", "decomposed"), [({"model": "off"}, BACK_FIRST), ({"model": "auto"}, Fail(400))]
)
async def test_words_that_nobody_plans_for_are_named(plans: dict[str, str], decomposed: Any) -> None:
    """IR-6: the declared steps are used, and the reply lists the ignored words."""
    read = understood("return flight first", **TRIP)
    [turn], _ = await ask(FITTING + BACK, plans=plans, mode="auto", nlu_think=read, plan_decompose=decomposed)

    assert "I didn't understand “return flight first”." in turn["reply"]
    assert searched(turn)[:2] == ["OSL", "MAD"]


async def test_a_domain_may_let_the_model_decompose_every_request() -> None:
    """The model's plan is completed without declared steps."""
    [turn], asked = await ask(FITTING + BACK, plans={"model": "on"})

    assert asked[0] == "plan_decompose"
    assert searched(turn) == ["MAD", "OSL"]


async def test_without_an_answer_the_declared_steps_are_taken() -> None:
    [turn], _ = await ask(FITTING, plans={"model": "on"}, plan_decompose=Fail(400))

    assert searched(turn)[:2] == ["OSL", "MAD"]
