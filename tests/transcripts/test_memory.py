"""Conversations with memories of the user: mentioned, explicit, used, corrected, forgotten (CO-4, PX-4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.ports.memory.preferences import Preference, PreferenceKind, Source
from orchestrator.types import DEFAULT_TENANT, JsonObject, UserId
from parley.simulator import Conversation, Simulator
from tests.cases import for_each
from tests.trained import simulate, state_of

ADA = UserId("ada")
BUSINESS = Preference("book_flight.cabin", PreferenceKind.RULE, Source.HABIT, "business", "usually business")


async def say(talk: Conversation, *lines: str) -> JsonObject:
    """Return the turn of the last line."""
    turns = [await talk.say(line) for line in lines]
    return turns[-1]


def slots(talk: Conversation) -> JsonObject:
    """Return the top task's slots, with the source of their values."""
    return state_of(talk)["stack"][-1]["slots"]


async def rules(simulator: Simulator, user: str = ADA) -> dict[str, object]:
    known = await simulator.preferences.of_user(DEFAULT_TENANT, UserId(user))
    return {one.key: one.value for one in known if one.kind is PreferenceKind.RULE}


async def test_a_preference_is_remembered_with_where_it_came_from() -> None:
    simulator = simulate("travel")
    talk = simulator.converse(user_id=ADA)
    turn = await say(talk, "Remember that I prefer aisle seats.")

    assert turn["completed"] == ["remember_preference"]
    assert "I prefer aisle seats" in turn["reply"]
    note, rule = sorted(
        await simulator.preferences.of_user(DEFAULT_TENANT, ADA),
        key=lambda one: one.kind is PreferenceKind.RULE,
    )
    assert (rule.key, rule.value, rule.source) == ("*.seat_position", "aisle", Source.EXPLICIT)
    assert (note.kind, note.text, note.labels) == (PreferenceKind.NOTE, "I prefer aisle seats", ("private",))
    assert note.origin["session_id"] == talk.session_id


async def test_another_conversation_of_the_user_assumes_it_and_says_so() -> None:
    simulator = simulate("travel")
    await say(simulator.converse(user_id=ADA), "remember that I always fly business class")
    other = simulator.converse(user_id=ADA)
    asked = await say(other, "Book a flight from Oslo to Madrid tomorrow")

    assert (slots(other)["cabin"]["value"], slots(other)["cabin"]["source"]) == ("business", "memory")
    assert "I'll use business as the cabin (you said “I always fly business class” on " in asked["reply"]

    corrected = await say(other, "economy please")
    assert corrected["flows"][0]["slots"]["cabin"] == "economy"
    assert slots(other)["cabin"]["source"] == "user"


@pytest.mark.parametrize(
    ("asked", "taken"),
    [("I want to choose a seat", {"seat_position": "aisle"}), ("I want seat 12A", {"seat": "12A"})],
)
async def test_who_names_a_seat_is_assumed_to_want_no_other(asked: str, taken: dict[str, str]) -> None:
    """Of a general and a specific preference, the specific one is used, unless the user names another."""
    talk = simulate("travel").converse(user_id=ADA)
    turn = await say(talk, "remember that I prefer aisle seats", asked)

    assert turn["flows"][0]["slots"] == taken


async def test_a_stranger_s_conversation_assumes_nothing() -> None:
    """RT-22"""
    simulator = simulate("travel")
    await say(simulator.converse(user_id=ADA), "remember that I always fly business class")
    for user in ("bob", None):
        talk = simulator.converse(user_id=user)
        turn = await say(talk, "Book a flight from Oslo to Madrid tomorrow")
        assert "cabin" not in slots(talk)
        assert "remember" not in turn["reply"]


async def test_without_a_user_it_lasts_as_long_as_the_conversation() -> None:
    simulator = simulate("travel")
    talk = simulator.converse()
    told = await say(talk, "remember that I prefer aisle seats")
    booked = await say(talk, "Book a flight from Oslo to Madrid tomorrow", "yes", "choose a seat")
    elsewhere = await say(simulator.converse(), "what do you know about me?")

    assert "as long as this conversation lasts" in told["reply"]
    assert "(aisle)" in booked["reply"]
    assert "anything about you yet" in elsewhere["reply"]


async def test_what_is_known_is_told_and_forgotten_on_request() -> None:
    simulator = simulate("travel")
    talk = simulator.converse(user_id=ADA)
    await say(talk, "remember that I prefer aisle seats", "keep in mind that I eat no meat")
    told = await say(talk, "What do you know about me?")
    assert "I prefer aisle seats" in told["reply"]
    assert "I eat no meat" in told["reply"]

    gone = await say(talk, "forget that I prefer aisle seats")
    assert "I prefer aisle seats" in gone["reply"]
    assert await rules(simulator) == {}
    assert "I eat no meat" in (await say(talk, "what do you remember about me"))["reply"]

    await say(talk, "remember that I like the window", "forget everything about me")
    assert await simulator.preferences.of_user(DEFAULT_TENANT, ADA) == []


async def test_forget_that_means_what_was_remembered_last_and_else_the_task_at_hand() -> None:
    simulator = simulate("travel")
    talk = simulator.converse(user_id=ADA)
    await say(talk, "remember that I prefer aisle seats", "remember that I fly business class")
    gone = await say(talk, "forget that")
    assert "I fly business class" in gone["reply"]
    assert await rules(simulator) == {"*.seat_position": "aisle"}

    other = simulator.converse(user_id=ADA)
    stopped = await say(other, "search flights to Rome", "forget it")
    assert stopped["flows"] == []
    assert await rules(simulator) == {"*.seat_position": "aisle"}


async def test_a_change_of_mind_replaces_what_was_said() -> None:
    simulator = simulate("travel")
    talk = simulator.converse(user_id=ADA)
    told = await say(
        talk,
        "remember that I prefer aisle seats",
        "remember that I like the window",
        "what do you know about me",
    )

    assert await rules(simulator) == {"*.seat_position": "window"}
    assert "aisle" not in told["reply"]


async def test_what_is_not_wanted_is_no_rule() -> None:
    simulator = simulate("travel")
    await say(simulator.converse(user_id=ADA), "remember that I don't like window seats")

    assert await rules(simulator) == {}


async def test_a_task_at_hand_goes_on_after_something_was_remembered() -> None:
    talk = simulate("travel").converse(user_id=ADA)
    turn = await say(talk, "Book a flight from Oslo to Madrid tomorrow", "remember that I eat no meat")

    assert turn["completed"] == ["remember_preference"]
    assert [flow["dact"] for flow in turn["flows"]] == ["book_flight"]
    assert turn["ambiguity"]["level"] == "confirmation"


@for_each(
    ("preference", "assumed"),
    [
        (BUSINESS, False),  # economy is the default, and a habit doesn't override it
        (replace(BUSINESS, source=Source.EXPLICIT), True),
        (replace(BUSINESS, key="book_flight.origin", value="OSL"), True),
        (replace(BUSINESS, key="search_flights.origin", value="OSL"), True),
        (replace(BUSINESS, key="book_flight.destination", value="OSL"), False),
        (replace(BUSINESS, key="book_flight.date", value="2026-11-30"), False),
        (replace(BUSINESS, key="*.cabin", source=Source.EXPLICIT, value="steerage"), False),
    ],
)
async def test_only_what_may_be_assumed_is_assumed(preference: Preference, assumed: bool) -> None:
    simulator = simulate("travel")
    await simulator.preferences.remember(DEFAULT_TENANT, ADA, (preference,))
    talk = simulator.converse(user_id=ADA)
    turn = await say(talk, "book a flight to Rome")

    assert any(slot["source"] == "memory" for slot in slots(talk).values()) is assumed
    assert ("From what I remember" in turn["reply"]) is assumed


async def test_labels_of_what_was_remembered_join_the_session() -> None:
    """PX-3"""
    simulator = simulate("travel")
    poisoned = replace(BUSINESS, source=Source.EXPLICIT, labels=("untrusted",))
    await simulator.preferences.remember(DEFAULT_TENANT, ADA, (poisoned,))
    talk = simulator.converse(user_id=ADA)
    await say(talk, "book a flight from Oslo to Rome")
    state = simulator.store.sessions[talk.session_id].state

    assert b"untrusted" in (state or b"")


@for_each(
    ("said", "kept"),
    [
        ("I always fly from Oslo", {"*.origin": "OSL"}),
        ("by the way, I usually sit at the window.", {"*.seat_position": "window"}),
        ("I prefer aisle seats", {"*.seat_position": "aisle"}),
        ("I fly business class, please remember that", {"*.cabin": "business"}),
        ("I am a vegetarian", {}),
        ("my wife is allergic to nuts, keep that in mind for the future", {}),
    ],
)
async def test_what_somebody_says_of_themselves_in_general_is_remembered(said: str, kept: JsonObject) -> None:
    simulator = simulate("travel")
    turn = await say(simulator.converse(user_id=ADA), said)

    assert turn["completed"] == ["remember_preference"]
    assert await rules(simulator) == kept
    assert len(await simulator.preferences.of_user(DEFAULT_TENANT, ADA)) == 1 + len(kept)


async def test_what_is_told_in_the_middle_of_a_task_serves_it_at_once() -> None:
    talk = simulate("travel").converse(user_id=ADA)
    turn = await say(talk, "book a flight to Rome tomorrow", "I always fly from Oslo")

    assert turn["completed"] == ["remember_preference"]
    assert "I'll use Oslo (OSL) as the origin (you said “I always fly from Oslo” on " in turn["reply"]
    assert turn["ambiguity"]["level"] == "confirmation"


@pytest.mark.parametrize(
    "asked", ["where do you have that from?", "why do you think I like the window?", "How do you know that?"]
)
async def test_who_asks_where_something_is_from_is_told(asked: str) -> None:
    talk = simulate("travel").converse(user_id=ADA)
    turn = await say(talk, "remember that I like the window", asked)

    assert "I like the window (you said so on " in turn["reply"]


async def test_a_habit_is_told_with_how_often_it_was_seen() -> None:
    simulator = simulate("travel")
    habit = replace(BUSINESS, key="book_flight.origin", value="OSL", origin={"seen": 4, "of": 5})
    await simulator.preferences.remember(DEFAULT_TENANT, ADA, (habit,))
    turn = await say(simulator.converse(user_id=ADA), "book a flight to Rome")

    assert "I'll use Oslo (OSL) as the origin (as you did 4 of 5 times)" in turn["reply"]
