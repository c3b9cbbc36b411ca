"""A request beyond the limit of tasks keeps its values while the user says which task to stop (FS-12)."""

from __future__ import annotations

import pytest

from orchestrator.simulator import Simulator
from tests.trained import trained

ASKING = {"flow_management": {"max_stack_depth": 2, "on_limit_reached": "ask_user"}}
FLIGHT, CHANGE = "stopped booking a flight", "stopped changing a booking"


@pytest.mark.parametrize(
    ("answer", "stopped"),
    [
        ("the first one", {FLIGHT}),
        ("stop the second one", {CHANGE}),
        ("the booking of a flight", {FLIGHT}),
        ("both", {FLIGHT, CHANGE}),
        ("stop both of them", {FLIGHT, CHANGE}),
    ],
)
async def test_a_request_beyond_the_limit_keeps_its_values(answer: str, stopped: set[str]) -> None:
    domain, system1 = trained("travel")
    talk = Simulator.of(domain, system1=system1, sections=ASKING).converse()
    await talk.say("Book a flight from Oslo to Madrid tomorrow")
    await talk.say("move booking PX7K2M to the evening")
    asked = await talk.say("add 2 bags to booking AB3CDE")
    assert [action["label"] for action in asked["actions"]][:2] == [
        "Stop booking a flight",
        "Stop changing a booking",
    ]
    turn = await talk.say(answer)
    assert {one for one in (FLIGHT, CHANGE) if one in turn["reply"]} == stopped, turn["reply"]
    assert ("booking AB3CDE" in turn["reply"]) is bool(stopped), turn["reply"]
