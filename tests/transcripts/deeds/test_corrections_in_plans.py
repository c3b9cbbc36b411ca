"""A correction while a plan is at work finds the value that it speaks of (IR-4, PL-7); judged by the store."""

from __future__ import annotations

import pytest

from tests.transcripts.test_never_the_wrong_deed import TRIP, begin, booked


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "actually make the return on the 7th",
            "the day you come back from Saturday 5 December to Monday 7 December",
        ),
        (
            "I want to come back on 7 december",
            "the day you come back from Saturday 5 December to Monday 7 December",
        ),
        ("no, on sunday 6 december", "the day of travel from Saturday 5 December to Sunday 6 December"),
    ],
)
async def test_what_is_said_of_the_way_back_changes_the_way_back(words: str, told: str) -> None:
    """The way there is booked; a day of the month is no row, and a bare day is that of the step at work."""
    talk = begin()
    await talk.say(TRIP.format("rome"))
    await talk.say("yes")
    offer = await talk.say(words)
    assert f"I have changed {told}" in offer["reply"]
    assert await booked(talk) == [("OSL", "FCO")]
    await talk.say("yes")
    assert await booked(talk) == [("FCO", "OSL"), ("OSL", "FCO")]


@pytest.mark.parametrize(
    ("words", "old", "ways"),
    [
        ("actually leave on 2 december", "Tuesday 1 December as the day you leave", ("OSL", "FCO")),
        ("actually from bergen", "Oslo (OSL) as the origin", ("BGO", "FCO")),
    ],
)
async def test_what_is_said_of_the_way_there_is_not_put_into_the_way_back(
    words: str, old: str, ways: tuple[str, str]
) -> None:
    """RT-12: the way back starts in Rome, and ends where the user comes from."""
    talk = begin()
    await talk.say(TRIP.format("rome"))
    await talk.say("yes")
    asked = await talk.say(words)
    assert f"already booked your flight ({asked['reply'].split('(')[1][:6]}), with {old}" in asked["reply"]
    for said in ("undo it and do it again", "yes", "yes"):
        turn = await talk.say(said)
    assert await booked(talk) == sorted([ways, ways[::-1]])
    assert turn["flows"] == []


async def test_where_the_words_fit_two_values_of_the_plan_the_user_chooses() -> None:
    talk = begin()
    await talk.say(TRIP.format("rome"))
    await talk.say("yes")
    asked = await talk.say("no, leaving or coming back on 3 december")
    assert [action["label"] for action in asked["actions"]][:2] == [
        "Change the day you leave to Thursday 3 December",
        "Change the day you come back to Thursday 3 December",
    ]
    turn = await talk.act("change_slot", asked["actions"][1]["payload"])
    assert "changed the day you come back from Saturday 5 December to Thursday 3 December" in turn["reply"]


async def test_progress_can_be_asked_for_in_words_after_the_end() -> None:
    """PL-4."""
    talk = begin()
    for words in (TRIP.format("rome"), "yes", "yes"):
        await talk.say(words)
    assert "6 of 6 steps" in (await talk.say("how far are you"))["reply"]


async def test_a_no_and_another_task_give_up_what_was_declined() -> None:
    """AM-4: it is not offered again after each task that follows."""
    talk = begin()
    await talk.say("book a flight from oslo to rome on 3 december")
    await talk.say("no")
    turn = await talk.say("show my bookings")
    assert "I have stopped booking a flight. You have no bookings yet" in turn["reply"]
    assert turn["flows"] == []


async def test_a_correction_after_a_no_goes_on_with_the_task() -> None:
    talk = begin()
    await talk.say("book a flight from oslo to rome on 3 december")
    await talk.say("no")
    offer = await talk.say("to paris instead")
    assert "Paris" in offer["reply"]
    assert offer["ambiguity"]["level"] == "confirmation"


async def test_in_a_plan_the_flights_of_the_step_at_work_are_meant() -> None:
    """IR-5, PL-1: the way back was looked up last, and the way there is offered."""
    talk = begin()
    await talk.say("plan a trip to rome from oslo leaving 1 december and coming back on 5 december")
    turn = await talk.say("is there an earlier one?")
    assert "Oslo (OSL) to Rome (FCO), Tuesday 1 December" in turn["reply"]
    turn = await talk.say("the earliest one")
    assert "DY2992 from Oslo (OSL) to Rome (FCO), Tuesday 1 December" in turn["reply"]
    assert await booked(talk) == []
