"""Conversations that operators take over, and their answers (AM-4, AM-5)."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.changes.repair import repair
from orchestrator.turns.approval import ApprovalRecord, Decision
from orchestrator.turns.turn import TurnInput, TurnKind
from orchestrator.types import DEFAULT_TENANT, JsonObject
from parley.simulator import Conversation
from parley.testing.lane import decide_approval
from tests.cases import for_each
from tests.trained import converse, converse_after, state_of


def asked_for(talk: Conversation) -> list[ApprovalRecord]:
    return [record for _, record in talk.simulator.store.approvals.values()]


async def decide(talk: Conversation, *, granted: bool, reason: str | None) -> JsonObject:
    """Decide as an operator. The session continues in a system turn."""
    record = asked_for(talk)[0]
    decision = Decision(granted, "ann", reason, talk.simulator.now, by_operator=True)
    decide_approval(talk.simulator.store, DEFAULT_TENANT, record.approval_id, decision)
    name = "approve" if granted else "deny"
    action = {"name": name, "payload": {"flow_id": record.flow_id or None, "approval_id": record.approval_id}}
    return await talk.submit(TurnInput(action=action, form="action", kind=TurnKind.SYSTEM))


@for_each(
    "wish",
    [
        "talk to a human",
        "can I speak to a real person please",
        "I want to talk to somebody",
        "operator",
        "this does not help, give me a human!",
    ],
)
async def test_who_asks_for_a_person_is_handed_over_once(wish: str) -> None:
    talk = converse("travel")
    turn = await talk.say("book a flight to rome")

    turn = await talk.say(wish)
    again = await talk.say(wish)

    (record,) = asked_for(talk)
    assert (record.operator_only, record.cause) == (True, "The user asked for a person.")
    assert (record.arguments["said"], record.arguments["doing"]) == (wish, "booking a flight")
    assert "I've asked a person" in turn["reply"]
    assert "Where would you like to fly from?" in turn["reply"]
    assert "Someone has been notified" in again["reply"]
    assert [flow["dact"] for flow in again["flows"]] == ["book_flight"]


@pytest.mark.parametrize(
    "words",
    ["book a flight to rome where I can talk to people", "book a flight to rome, to call a colleague"],
)
async def test_a_request_that_ends_with_people_is_no_wish_to_talk_to_one(words: str) -> None:
    talk = converse("travel")
    turn = await talk.say(words)
    assert [flow["dact"] for flow in turn["flows"]] == ["book_flight"]
    assert asked_for(talk) == []


async def test_what_the_person_says_is_told_and_the_task_goes_on() -> None:
    talk = await converse_after("travel", "book a flight to rome", "talk to a human")

    turn = await decide(talk, granted=True, reason="Fly from Bergen, it is closed in Oslo.")

    assert "A person replied: Fly from Bergen, it is closed in Oslo." in turn["reply"]
    assert "Where would you like to fly from?" in turn["reply"]
    turn = await talk.say("bergen")
    assert turn["flows"][0]["slots"]["origin"] == "BGO"


async def test_who_cannot_be_helped_is_told_so_and_may_ask_again() -> None:
    talk = await converse_after("travel", "talk to a human")

    turn = await decide(talk, granted=False, reason=None)
    again = await talk.say("can I speak to a person")

    assert "No one could look at this" in turn["reply"]
    assert "I've asked a person" in again["reply"]
    assert len(asked_for(talk)) == 2


async def test_nobody_but_operators_answers() -> None:
    talk = await converse_after("travel", "talk to a human")
    (record,) = asked_for(talk)

    turn = await talk.act("approve", {"approval_id": record.approval_id})
    await talk.say("yes")

    assert "A person replied" not in turn["reply"]
    assert asked_for(talk)[0].status.value == "pending"


async def test_not_to_want_a_person_is_no_wish_for_one() -> None:
    talk = await converse_after("travel", "I don't want to talk to a person")
    assert asked_for(talk) == []


async def test_a_question_that_leads_nowhere_offers_other_ways_and_then_a_person() -> None:
    """Choices, a simpler task, and a person in the second round. In the fourth, Parley requests a person itself."""
    talk = await converse_after("travel", "book a flight from oslo to rome on 3 december", "yes")
    turn = await talk.say("choose a seat")
    for word in ("blah", "fnord"):
        turn = await talk.say(word)
    names = [action["name"] for action in turn["actions"]]
    assert names == ["fill_slot", "fill_slot", "fill_slot", "cancel_flow", "help", "person"]
    assert "talk to a person" in turn["reply"]
    assert asked_for(talk) == []

    for word in ("grmpf", "blurb"):
        turn = await talk.say(word)
    (record,) = asked_for(talk)
    assert record.cause == "The same question was asked 4 times."
    assert "I've asked a person" in turn["reply"]


async def test_a_simpler_task_is_offered_where_the_domain_names_one() -> None:
    talk = await converse_after("travel", "check my booking")
    for word in ("blah", "fnord", "zorp"):
        turn = await talk.say(word)

    simpler = next(action for action in turn["actions"] if action["name"] == "start_flow")
    assert simpler["payload"] == {"dact": "list_bookings"}
    assert (await talk.act("start_flow", simpler["payload"]))["completed"] == ["list_bookings"]


async def test_mending_a_stored_state_leaves_the_request_for_a_person_alone() -> None:
    """The request belongs to no task and outlives all of them (AM-5)."""
    talk = await converse_after("travel", "book a flight to rome", "I want to talk to a human")
    stored = state_of(talk)
    assert len(stored["approvals"]) == 1

    assert repair(stored) == (stored, [])
