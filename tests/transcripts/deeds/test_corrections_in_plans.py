"""Corrections during a plan find their value (IR-4, PL-7), as the store shows."""

from __future__ import annotations

import pytest

from orchestrator.types import DEFAULT_TENANT
from parley.simulator import Conversation
from tests.transcripts.test_never_the_wrong_deed import TRIP, after, begin, booked


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
    """The outbound flight is booked. A day of the month is not a row, and a bare day is for the current step."""
    talk = await after(TRIP.format("rome"), "yes")
    offer = await talk.say(words)
    assert f"I've changed {told}" in offer["reply"]
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
    """RT-12: the return flight starts in Rome, and ends at the user's origin."""
    talk = await after(TRIP.format("rome"), "yes")
    asked = await talk.say(words)
    assert f"already booked your flight ({asked['reply'].split('(')[1][:6]}), with {old}" in asked["reply"]
    for said in ("undo it and do it again", "yes", "yes"):
        turn = await talk.say(said)
    assert await booked(talk) == sorted([ways, ways[::-1]])
    assert turn["flows"] == []


async def test_progress_can_be_asked_for_in_words_after_the_end() -> None:
    """PL-4."""
    talk = await after(TRIP.format("rome"), "yes", "yes")
    assert "6 of 6 steps" in (await talk.say("how far are you"))["reply"]


async def test_a_no_and_another_task_give_up_what_was_declined() -> None:
    """AM-4: it is not offered again after each later task."""
    talk = await after("book a flight from oslo to rome on 3 december", "no")
    turn = await talk.say("show my bookings")
    assert "I've stopped booking a flight. You have no bookings yet" in turn["reply"]
    assert turn["flows"] == []


async def test_a_correction_after_a_no_goes_on_with_the_task() -> None:
    talk = await after("book a flight from oslo to rome on 3 december", "no")
    offer = await talk.say("to paris instead")
    assert "Paris" in offer["reply"]
    assert offer["ambiguity"]["level"] == "confirmation"


async def test_in_a_plan_the_flights_of_the_step_at_work_are_meant() -> None:
    """IR-5, PL-1: the return flights were looked up last, and an outbound flight is offered."""
    talk = await after("plan a trip to rome from oslo leaving 1 december and coming back on 5 december")
    turn = await talk.say("is there an earlier one?")
    assert "Oslo (OSL) to Rome (FCO), Tuesday 1 December" in turn["reply"]
    turn = await talk.say("the earliest one")
    assert "DY2992 from Oslo (OSL) to Rome (FCO), Tuesday 1 December" in turn["reply"]
    assert await booked(talk) == []


async def test_days_that_a_change_moves_past_move_along() -> None:
    """IR-4: leaving after the return day keeps the length of stay; nothing is booked unasked."""
    talk = await after(TRIP.format("rome"))
    turn = await talk.say("no, leave on 9 december")
    assert "the day you leave from Tuesday 1 December to Wednesday 9 December" in turn["reply"]
    assert "the day you come back from Saturday 5 December to Sunday 13 December" in turn["reply"]
    await talk.say("yes")
    offer = await talk.say("no, come back on 2 december")
    assert "Wednesday 2 December is before the day you leave, Wednesday 9 December." in offer["reply"]
    assert "Sunday 13 December" in offer["reply"]
    await talk.say("yes")
    assert await days(talk) == ["2026-12-09", "2026-12-13"]


async def test_the_step_at_work_follows_what_its_plan_has_now() -> None:
    """PL-7: a step's earlier value does not override a later value of the plan."""
    talk = await after(TRIP.format("rome"), "yes", "no, on sunday 6 december")
    offer = await talk.say("make the return on 7 december")
    assert offer["reply"].splitlines()[-1].count("Monday 7 December") == 1
    await talk.say("yes")
    assert await days(talk) == ["2026-12-01", "2026-12-07"]


async def test_the_booking_that_is_offered_is_the_one_that_is_changed() -> None:
    """Another booking is meant only with its reference."""
    talk = await after(TRIP.format("rome"))
    first = (await talk.say("yes"))["reply"].split("reference is ")[1][:6]
    offer = await talk.say("change the booking to 7 december")
    assert "I've changed the day of travel from Saturday 5 December to Monday 7 December" in offer["reply"]
    other = await talk.say(f"change booking {first} to 2 december")
    assert f"Booking {first}, Oslo (OSL) to Rome (FCO)" in other["reply"]
    assert await days(talk) == ["2026-12-01"]


@pytest.mark.parametrize(
    ("flight", "step", "left"),
    [
        ("oslo to rome on 1 december in the evening", "book the outbound flight", "FCO"),
        ("rome to oslo on 5 december", "book the return flight", "OSL"),
    ],
)
async def test_what_was_booked_by_itself_serves_the_trip(flight: str, step: str, left: str) -> None:
    """PL-7: it is reported, selected again, and never booked twice; the plan lists it at the end."""
    talk = await after(f"book a flight from {flight}")
    booking = (await talk.say("yes"))["reply"].split("reference is ")[1][:6]
    offer = await talk.say(TRIP.format("rome"))
    assert f"already booked your flight ({booking}); I'll count that as “{step}”." in offer["reply"]
    assert "already booked" in offer["reply"]
    assert f"{step[0].upper()}{step[1:]}" not in offer["reply"]
    assert f"from {'Rome' if left == 'FCO' else 'Oslo'}" in offer["reply"].splitlines()[-1]
    end = await talk.say("yes")
    assert await booked(talk) == [("FCO", "OSL"), ("OSL", "FCO")]
    assert f": {booking}." in end["reply"].splitlines()[-1]


@pytest.mark.parametrize(
    ("before", "asked"),
    [
        ("on 2 december", "plan a trip from oslo to rome on 1 december, back on 5 december"),
        ("on 1 december for two people", "plan a trip from oslo to rome on 1 december, back on 5 december"),
    ],
)
async def test_what_has_other_values_serves_no_trip(before: str, asked: str) -> None:
    talk = await after(f"book a flight from oslo to rome {before}", "yes")
    offer = await talk.say(asked)
    assert "Book the outbound flight" in offer["reply"]
    assert "I'll count that" not in offer["reply"]


async def test_what_was_changed_or_cancelled_since_serves_no_trip() -> None:
    """The first booking exists, but on another day; the other one no longer exists."""
    for words, left in (("change booking {} to 3 december", 1), ("cancel booking {}", 0)):
        talk = await after("book a flight from oslo to rome on 1 december")
        booking = (await talk.say("yes"))["reply"].split("reference is ")[1][:6]
        await talk.say(words.format(booking))
        await talk.say("yes")
        offer = await talk.say(TRIP.format("rome"))
        assert "I'll count that" not in offer["reply"]
        assert len(await days(talk)) == left


async def test_of_two_days_that_cannot_be_together_the_other_one_is_asked_for_next() -> None:
    """AM-4: after a wrong departure day, the assistant does not ask for the return day forever."""
    talk = await after("plan a trip from oslo to rome", "9 december")
    assert "is before the day you leave, Wednesday 9 December" in (await talk.say("5 december"))["reply"]
    assert (await talk.say("5 december"))["reply"].endswith("What day would you like to leave?")
    assert "Saturday 5 December" in (await talk.say("1 december"))["reply"]


async def test_without_a_model_a_trip_is_planned_where_advice_was_asked_for() -> None:
    talk = begin()
    turn = await talk.say("advise me on a trip from oslo to rome on 1 december")
    assert "needs a language model" in turn["reply"]
    assert "come back?" in turn["reply"]
    assert "Saturday 5 December" in (await talk.say("5 december"))["reply"]


@pytest.mark.parametrize(
    ("first", "second", "told", "left"),
    [
        (
            "book a flight from oslo to bergen on 3 december",
            "book oslo to rome on the 5th",
            ["from Thursday 3 December to Saturday 5 December", "from Bergen (BGO) to Rome (FCO)"],
            [("OSL", "FCO")],
        ),
        (
            TRIP.format("rome"),
            "plan a trip from oslo to athens on 4 december, back on 9 december",
            ["from Rome (FCO) to Athens (ATH)", "from Saturday 5 December to Wednesday 9 December"],
            [("OSL", "ATH")],
        ),
    ],
)
async def test_a_second_request_of_an_open_type_says_each_value_that_it_changes(
    first: str, second: str, told: list[str], left: list[tuple[str, str]]
) -> None:
    talk = begin()
    old = await talk.say(first)
    offer = await talk.say(second)
    assert [one for one in told if f" {one}." not in offer["reply"]] == []
    assert "flight_book" not in offer["tools"]
    stale = next(action for action in old["actions"] if action["name"] == "confirm")
    assert "no longer open" in (await talk.act("confirm", stale["payload"]))["reply"]
    await talk.say("yes")
    assert await booked(talk) == left


async def days(talk: Conversation) -> list[str]:
    """Return the days of the stored bookings."""
    records = talk.simulator.records[DEFAULT_TENANT]
    return sorted(one["day"] for one in await records.find("bookings", {"status": "confirmed"}, limit=100))


@pytest.mark.parametrize("words", ["I don't need the return after all", "we don't need the return flight"])
async def test_what_is_not_needed_after_all_is_left_out(words: str) -> None:
    talk = await after(TRIP.format("rome"), "yes")
    turn = await talk.say(words)
    assert "Shall I book it" not in turn["reply"]
    assert await booked(talk) == [("OSL", "FCO")]


async def test_of_a_plan_only_what_is_offered_is_told() -> None:
    """IR-3: the outbound price is not the price of the return or of both."""
    talk = await after(TRIP.format("rome"))
    assert "Price €143" in (await talk.say("what are the outbound fares"))["reply"]
    for words in ("what are the return fares", "how much is it altogether"):
        assert "Price €143" not in (await talk.say(words))["reply"]
    assert "2 passengers" not in (await talk.say("can we stay two days longer"))["reply"]


ROUND = "plan a trip from oslo to rome on 4 december, back on 7 december"


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("change the return to tuesday", "Tuesday 8 December"),
        ("the return on 9 december please", "Wednesday 9 December"),
    ],
)
async def test_the_leg_that_is_named_is_moved(words: str, day: str) -> None:
    """IR-6: a weekday is relative to this flight's day."""
    talk = await after(ROUND)
    turn = await talk.say(words)
    assert f"the day you come back from Monday 7 December to {day}" in turn["reply"]
    assert "Friday 4 December" in turn["reply"].rsplit("\n", maxsplit=1)[-1]


async def test_a_request_that_has_nothing_of_a_plan_interrupts_it() -> None:
    """The plan continues unchanged."""
    talk = await after(ROUND)
    offer = await talk.say("book a flight from berlin to madrid tomorrow")
    assert "Berlin (BER) to Madrid (MAD)" in offer["reply"]
    back = await talk.say("yes")
    assert "Oslo (OSL) to Rome (FCO), Friday 4 December" in back["reply"]
    await talk.say("yes")
    turn = await talk.say("yes")
    assert "Your trip to Rome (FCO) is planned and booked" in turn["reply"]
    assert await booked(talk) == [("BER", "MAD"), ("FCO", "OSL"), ("OSL", "FCO")]


async def test_a_look_at_the_bookings_is_not_the_plans_last_step() -> None:
    talk = await after(ROUND)
    assert "You have no bookings yet." in (await talk.say("list my bookings"))["reply"]
    await talk.say("yes")
    assert "You have 2 bookings" in (await talk.say("yes"))["reply"]


async def test_values_alone_correct_the_plan() -> None:
    talk = await after(ROUND)
    turn = await talk.say("no, from bergen to milan")
    assert "Bergen (BGO) to Milan (MXP)" in turn["reply"].rsplit("\n", maxsplit=1)[-1]
