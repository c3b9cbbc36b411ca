"""Evaluation cases from feedback on answers: `parley feedback cases`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.routes.read_models import timed_turn
from lab.evaluation.conversations import Evaluated, add_cases, go_through, read_file
from orchestrator.errors import InvalidInput
from orchestrator.turns.cases import make_case
from orchestrator.types import DEFAULT_TENANT, JsonObject
from parley.simulator import Conversation
from parley.testing.inbox import MemoryInbox
from tests.trained import simulate, trained

SAID = ("Book a flight from Oslo to Madrid tomorrow", {"name": "confirm"}, "what did I book?")


async def converse(*more: str) -> list[JsonObject]:
    """Return the turns of a booking conversation, as the gateway lists them, oldest first."""
    simulator = simulate("travel")
    talk = simulator.converse()
    for said in SAID:
        await (talk.say(said) if isinstance(said, str) else click(talk, said["name"]))
    reference = (await listed(talk))[1]["frame"]["data"]["booking_ref"]
    for said in more:
        await talk.say(said.format(reference))
    return await listed(talk)


async def click(talk: Conversation, name: str) -> None:
    """Click the named action of the last answer."""
    (offered,) = [one for one in (await listed(talk))[-1]["actions"] if one["name"] == name]
    await talk.act(name, offered["payload"])


async def listed(talk: Conversation) -> list[JsonObject]:
    found = await MemoryInbox(talk.simulator.store).turns(DEFAULT_TENANT, session_id=talk.session_id)
    return [timed_turn(record) for record in sorted(found, key=lambda one: one.seq)]


def say_of(turn: JsonObject, **said: Any) -> JsonObject:
    return {
        "turn_id": turn["turn_id"],
        "rating": None,
        "comment": None,
        "correction": None,
        "author": "ann",
    } | said


async def evaluate(case: JsonObject, folder: Path) -> list[str]:
    """Write a case to a file, read it again, and return its deviations."""
    path = folder / "feedback.yaml"
    assert add_cases([case], path) == 1
    (conversation,) = read_file(path).conversations
    outcomes = await go_through(conversation, Evaluated(*trained("travel")))
    return [fault for outcome in outcomes for fault in outcome.faults]


async def test_a_good_answer_becomes_a_case_that_holds(tmp_path: Path) -> None:
    """The case includes clicks and a reference of its run."""
    turns = await converse("cancel booking {}")
    case = make_case(turns, turns[-1]["turn_id"], say_of(turns[-1], rating="up"))

    assert case is not None
    assert case["turns"][1] == {"action": {"name": "confirm", "payload": {}}}
    assert case["turns"][-1]["user"] == "cancel booking <booking_ref>"
    assert case["turns"][-1]["expect"]["flows"] == ["cancel_booking"]
    assert await evaluate(case, tmp_path) == []


async def test_a_name_or_a_price_that_an_answer_tells_is_no_reference() -> None:
    turns = await converse()
    turns[0]["frame"] = {"data": {"airline": "Norwegian", "price": 12500}}
    held = {"airline": "Norwegian", "most": "12500"}
    turns[2] |= {"text": "with Norwegian, for 12500", "flows": [{"dact": "search_flights", "slots": held}]}
    case = make_case(turns, turns[2]["turn_id"], say_of(turns[2], rating="up"))

    assert case is not None
    assert case["turns"][2]["user"] == "with Norwegian, for 12500"
    assert case["turns"][2]["expect"]["slots"] == held


async def test_a_correction_is_what_must_come(tmp_path: Path) -> None:
    turns = await converse()
    right = {"dact": "check_booking", "slots": {"booking_ref": "ABC123"}, "reply": "You have one booking."}
    case = make_case(turns, turns[2]["turn_id"], say_of(turns[2], correction=right))

    assert case is not None
    assert len(case["turns"]) == 3
    assert case["turns"][2]["expect"] == {
        "flow": "check_booking",
        "slots": {"booking_ref": "ABC123"},
        "rubric": ["It says the same as: You have one booking."],
    }
    assert "flow is 'list_bookings', not 'check_booking'" in await evaluate(case, tmp_path)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"comment": "too long"}, {"rubric": ["This comment does not apply to it: too long"]}),
        ({}, {"not_answer": "You\\ have\\ 1\\ booking:"}),
    ],
)
async def test_a_bad_answer_may_not_come_again(said: JsonObject, expected: JsonObject) -> None:
    turns = await converse()
    case = make_case(turns, turns[2]["turn_id"], say_of(turns[2], rating="down", **said))

    assert case is not None
    assert case["turns"][2]["expect"] == expected


async def test_what_says_nothing_of_the_answer_is_no_case() -> None:
    turns = await converse()

    assert make_case(turns, turns[2]["turn_id"], say_of(turns[2], author=None)) is None
    assert make_case(turns, "turn_x", say_of(turns[2], rating="up")) is None


async def test_a_case_is_added_once_and_to_conversations_only(tmp_path: Path) -> None:
    turns = await converse()
    cases = [make_case(turns, turns[place]["turn_id"], say_of(turns[place], rating="up")) for place in (0, 2)]
    made = [case for case in cases if case is not None]
    path = tmp_path / "evaluations" / "feedback.yaml"

    assert [add_cases(made[:1], path), add_cases(made, path), add_cases(made, path)] == [1, 1, 0]
    assert [one.name for one in read_file(path).conversations] == [case["name"] for case in made]

    path.write_text("conversations: []\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="Can't add to"):
        add_cases(made, path)
