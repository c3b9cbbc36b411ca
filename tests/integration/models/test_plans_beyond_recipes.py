"""Declared steps cost no call of a model, unless the domain lets a model decompose every request (PL-1)."""

from __future__ import annotations

from typing import Any

from orchestrator.testing.scripted_model import Answer, Fail
from tests.integration.models.staging import rules, staged

FITTING = "plan a trip from Oslo to Madrid from 4 december to 8 december for 2 under 2000 euros"
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


async def ask(
    text: str, plans: dict[str, str] | None = None, **replies: Any
) -> tuple[dict[str, Any], list[str | None]]:
    script = rules(**({"plan_decompose": BACK_FIRST, "plan_replan": KEEP, "plan_complete": MET} | replies))
    sections = {
        "nlu": {"mode": "system1", "slot_fill": "off"},
        "generation": {"naturalize": "off"},
        "plans": plans or {},
    }
    async with staged(script, **sections) as stage:
        turn = await stage.simulator.converse(user_id="ada").say(text)
        return turn, [request.prompt_id for request in stage.model.requests]


async def test_declared_steps_are_not_decomposed_by_a_model() -> None:
    _, asked = await ask(FITTING)

    assert "plan_decompose" not in asked


async def test_a_domain_may_let_the_model_decompose_every_request() -> None:
    """Its plan is followed to the end; no declared step is added."""
    turn, asked = await ask(FITTING + ", but look for the return flight first", plans={"model": "on"})

    assert asked[0] == "plan_decompose"
    searched = [tool["arguments"]["origin"] for tool in turn["tools"]]
    assert searched == ["MAD", "OSL"]


async def test_without_an_answer_the_declared_steps_are_taken() -> None:
    turn, _ = await ask(FITTING, plans={"model": "on"}, plan_decompose=Fail(400))

    searched = [tool["arguments"].get("origin") for tool in turn["tools"]]
    assert searched[:2] == ["OSL", "MAD"]
