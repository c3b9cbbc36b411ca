"""Actions match requests and consent, by words, clicks and model answers (PX-18, PL-7).

The stored flights at the end of each conversation decide.
"""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.types import DEFAULT_TENANT
from parley.simulator import Conversation
from tests.cases import for_each
from tests.trained import converse, converse_after

OFFER = "book a flight from oslo to rome on 3 december"
TRIP = "plan a trip to {} from oslo leaving 1 december and coming back on 5 december"


def begin(**more: Any) -> Conversation:
    return converse("travel", **more)


async def after(*said: str, **more: Any) -> Conversation:
    return await converse_after("travel", *said, **more)


async def booked(talk: Conversation) -> list[tuple[str, str]]:
    """Return the stored bookings."""
    records = talk.simulator.records.get(DEFAULT_TENANT)
    found = [] if records is None else await records.find("bookings", {"status": "confirmed"}, limit=100)
    return sorted((one["origin"], one["destination"]) for one in found)


def payload_of(turn: dict[str, Any], name: str) -> dict[str, Any]:
    return next(action["payload"] for action in turn["actions"] if action["name"] == name)


async def test_a_click_on_an_older_offer_books_nothing() -> None:
    """PX-18: the reply shows the current offer, which can still be accepted."""
    talk = begin()
    old = payload_of(await talk.say(OFFER), "confirm")
    offer = await talk.say("to paris instead")

    refused = await talk.act("confirm", old)

    assert "no longer open" in refused["reply"]
    assert "Paris" in refused["reply"]
    assert await booked(talk) == []
    await talk.act("confirm", payload_of(offer, "confirm"))
    assert await booked(talk) == [("OSL", "CDG")]


@for_each(
    "payload",
    [{}, {"flow_id": "flow_made_up"}, {"candidate": "0" * 32}, {"flow_id": "flow_made_up", "candidate": ""}],
)
async def test_a_made_up_click_books_nothing(payload: dict[str, Any]) -> None:
    talk = await after(OFFER)

    turn = await talk.act("confirm", payload)

    assert "no longer open" in turn["reply"]
    assert await booked(talk) == []


@for_each("name", ["fill_slot", "change_slot", "cancel_flow", "resume_flow"])
async def test_a_click_about_a_task_that_is_over_changes_nothing(name: str) -> None:
    talk = begin()
    offer = await talk.say(OFFER)
    payload = {"flow_id": "flow_that_is_over", "slot": "destination", "value": "CDG"}

    turn = await talk.act(name, payload)

    assert "no longer open" in turn["reply"]
    assert turn["flows"] == offer["flows"]


async def test_a_no_that_is_taken_back_offers_the_same_once_more() -> None:
    talk = begin()
    for words in (OFFER, "no", "sorry, yes, book it"):
        turn = await talk.say(words)
    assert turn["ambiguity"]["level"] == "confirmation"
    assert await booked(talk) == []
    await talk.say("yes")
    assert await booked(talk) == [("OSL", "FCO")]


async def test_a_plan_leaves_a_waiting_task_with_other_values_alone() -> None:
    """PL-7: the task is not a step of the plan, and resumes after the plan."""
    talk = begin()
    await talk.say(OFFER)
    await talk.say("plan a trip to paris from bergen leaving 1 december and coming back on 5 december")
    await talk.say("yes")
    turn = await talk.say("yes")

    assert await booked(talk) == [("BGO", "CDG"), ("CDG", "BGO")]
    assert "Rome" in turn["reply"].split("Back to")[1]


@pytest.mark.parametrize("words", ["sorry I meant Paris not Rome", TRIP.format("paris")])
async def test_after_a_step_was_booked_a_correction_asks_and_undoes(words: str) -> None:
    """PL-7, RT-12: keep, undo and redo, or stop; nothing changes before."""
    talk = await after(TRIP.format("rome"), "yes")

    asked = await talk.say(words)

    names = [action["name"] for action in asked["actions"]]
    assert names[:3] == ["keep_effect", "compensate_effect", "cancel_flow"]
    assert await booked(talk) == [("OSL", "FCO")]
    await talk.act("compensate_effect", payload_of(asked, "compensate_effect"))
    assert await booked(talk) == []
    await talk.say("yes")
    turn = await talk.say("yes")
    assert await booked(talk) == [("CDG", "OSL"), ("OSL", "CDG")]
    assert "Your trip to Paris (CDG) is planned and booked" in turn["reply"]


@pytest.mark.parametrize(
    ("answer", "passengers"), [("undo it", [2, 2]), ("leave it as it is", [1, 1]), ("stop", [1])]
)
async def test_a_value_that_the_plan_gets_late_asks_about_what_was_done_without_it(
    answer: str, passengers: list[int]
) -> None:
    """PL-7, RT-12: the value was unknown when the outbound flight was booked."""
    talk = await after(TRIP.format("rome"), "yes")

    asked = await talk.say("plan a trip for two people")

    assert "already booked your flight" in asked["reply"]
    turn = await talk.say(answer)
    for _ in range(len(passengers)):
        turn = await talk.say("yes") if turn["ambiguity"] is not None else turn
    assert turn["ambiguity"] is None
    kept = await talk.simulator.records[DEFAULT_TENANT].find("bookings", {"status": "confirmed"}, limit=9)
    assert sorted(one["passengers"] for one in kept) == passengers


@pytest.mark.parametrize(("answer", "left"), [("undo it", []), ("leave it", [("OSL", "FCO")])])
async def test_a_booking_that_a_rule_of_the_plan_no_longer_allows_is_asked_about(
    answer: str, left: list[tuple[str, str]]
) -> None:
    """PL-7: with 200 euros, nothing would have been booked."""
    talk = await after(TRIP.format("rome"), "yes")

    asked = await talk.say("plan a trip under 200 euros")

    assert "already booked your flight" in asked["reply"]
    assert "but now the flights cost more than you want to spend" in asked["reply"]
    assert "compensate_effect" in {action["name"] for action in asked["actions"]}
    turn = await talk.say(answer)
    assert "couldn't finish planning your trip" in turn["reply"]
    assert await booked(talk) == left


async def test_after_a_plan_has_ended_only_what_a_correction_concerns_is_done_anew() -> None:
    """PL-7, IR-4: the return flight stays booked."""
    talk = await after(TRIP.format("rome"), "yes", "yes")

    asked = await talk.act("change_slot", {"dact": "plan_trip", "slot": "date", "value": "2026-12-02"})

    assert asked["reply"].count("booked your flight") == 1
    offer = await talk.say("undo it and do it again")
    assert "changed the day you leave from Tuesday 1 December to Wednesday 2 December" in offer["reply"]
    turn = await talk.say("yes")
    assert "Your trip to Rome (FCO) is planned and booked" in turn["reply"]
    assert await booked(talk) == [("FCO", "OSL"), ("OSL", "FCO")]


async def test_after_a_plan_has_ended_both_bookings_are_named() -> None:
    talk = await after(TRIP.format("rome"), "yes", "yes")

    asked = await talk.act("change_slot", {"dact": "plan_trip", "slot": "destination", "value": "CDG"})

    assert asked["reply"].count("booked your flight") == 2
    await talk.act("compensate_effect", payload_of(asked, "compensate_effect"))
    assert await booked(talk) == []
    await talk.say("yes")
    await talk.say("yes")
    assert await booked(talk) == [("CDG", "OSL"), ("OSL", "CDG")]


async def test_a_stopped_plan_says_what_stays() -> None:
    """PL-7: the end is reported correctly."""
    talk = await after(TRIP.format("rome"), "yes")

    turn = await talk.say("stop")

    assert turn["flows"] == []
    assert turn["completed"] == []
    assert "stopped planning your trip" in turn["reply"]
    assert "already booked your flight" in turn["reply"]
    assert "planned and booked" not in turn["reply"]
    assert await booked(talk) == [("OSL", "FCO")]


async def test_a_plan_without_its_second_booking_is_done_in_part() -> None:
    talk = await after(TRIP.format("rome"), "yes")

    turn = await talk.say("skip the return")

    assert "partly finished" in turn["reply"]
    assert "Left out, as you asked: book the return flight" in turn["reply"]
    assert "planned and booked" not in turn["reply"]
    assert await booked(talk) == [("OSL", "FCO")]
