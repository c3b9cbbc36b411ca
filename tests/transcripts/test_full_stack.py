"""A request above the task limit keeps its values while the user chooses a task to stop (FS-12)."""

from __future__ import annotations

from parley.simulator import Conversation
from tests.cases import for_each
from tests.trained import converse

ASKING = {"flow_management": {"max_stack_depth": 2, "on_limit_reached": "ask_user"}}
FLIGHT, CHANGE = "stopped booking a flight", "stopped changing a booking"


@for_each(
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
    talk = converse("travel", sections=ASKING)
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


WAITS = "After that, I'll get to “add 2 bags to booking AB3CDE”."


async def fill_stack() -> Conversation:
    """Start two tasks, and request a third, which waits for room."""
    talk = converse("travel", sections=ASKING)
    await talk.say("Book a flight from Oslo to Madrid tomorrow")
    await talk.say("move booking PX7K2M to the evening")
    await talk.say("add 2 bags to booking AB3CDE")
    return talk


async def test_another_request_beyond_the_limit_leaves_the_first_waiting() -> None:
    """FS-12: both requests wait, and the user is informed."""
    talk = await fill_stack()

    asked = await talk.say("add 3 bags to booking XY3CDE")
    assert WAITS in asked["reply"]
    assert "Which one should I stop?" in asked["reply"]

    begun = await talk.say("the second one")
    assert CHANGE in begun["reply"]
    assert "booking XY3CDE" in begun["reply"]
    ended = await talk.say("stop")
    ended = ended if "Now to" in ended["reply"] else await talk.say("stop")
    assert "Now to “add 2 bags to booking AB3CDE”. I can't find booking AB3CDE." in ended["reply"]


async def test_a_corrected_request_beyond_the_limit_takes_the_place_of_the_first() -> None:
    talk = await fill_stack()

    asked = await talk.say("add 3 bags to booking AB3CDE")

    assert "After that" not in asked["reply"]
    assert "Which one should I stop?" in asked["reply"]


async def test_a_waiting_request_outlives_another_task_but_no_cancellation_of_everything() -> None:
    talk, other = await fill_stack(), await fill_stack()

    assert WAITS in (await talk.say("go back to the flight booking"))["reply"]
    assert "AB3CDE" not in (await other.say("cancel everything"))["reply"]
    assert (await other.say("list my bookings"))["reply"] == "You have no bookings yet."
