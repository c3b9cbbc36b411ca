"""Several requests in a message are executed in turn, or named (IR-6), as the store shows."""

from __future__ import annotations

import re

import pytest

from parley.testing.scripted_model import Answer, Computed, Reply, Request, Rule
from tests.conversation import scripted
from tests.transcripts.test_misled_by_a_model import as_task, misled
from tests.transcripts.test_never_the_wrong_deed import after, begin, booked, payload_of

FIRST = "book a flight from oslo to rome on 3 december"


async def test_two_bookings_are_made_each_with_its_own_yes() -> None:
    talk = begin()
    offer = await talk.say(f"{FIRST} and then book a flight from rome to athens on 6 december")
    assert "After that, I'll get to “book a flight from rome to athens on 6 december”" in offer["reply"]

    second = await talk.say("yes")
    assert await booked(talk) == [("OSL", "FCO")]
    assert "Now to “book a flight from rome to athens on 6 december”" in second["reply"]

    await talk.say("yes")
    assert await booked(talk) == [("FCO", "ATH"), ("OSL", "FCO")]


@pytest.mark.parametrize(
    "words",
    [
        "find flights from oslo to rome on 3 december and book the second one",
        "find flights from oslo to rome on 3 december, then book the second one and then show my bookings",
    ],
)
async def test_a_second_request_refers_to_what_the_first_has_found(words: str) -> None:
    talk = begin()
    offer = await talk.say(words)
    assert "DY3508" in offer["reply"]
    assert offer["ambiguity"]["level"] == "confirmation"
    done = await talk.say("yes")
    assert await booked(talk) == [("OSL", "FCO")]
    assert ("You have 1 booking" in done["reply"]) == ("show my bookings" in words)


async def test_a_second_request_outlives_the_first() -> None:
    talk = await after("check my booking and then book a flight to paris")
    next_one = await talk.say("stop")
    assert "stopped looking up a booking. Now to “book a flight to paris”" in next_one["reply"]


@pytest.mark.parametrize("words", ["cancel everything", "cancel both", "stop it all!"])
async def test_a_second_request_ends_with_everything(words: str) -> None:
    talk = await after("check my booking and then book a flight to paris")
    assert "Waiting after that: “book a flight to paris”" in (await talk.act("status"))["reply"]
    ended = await talk.say(words)
    assert "paris" not in ended["reply"]
    assert ended["flows"] == []


@pytest.mark.parametrize("words", ["a; " * 400, "book; " * 300])
async def test_a_message_of_hundreds_of_parts_is_answered(words: str) -> None:
    turn = await begin().say(words)
    assert "went wrong" not in turn["reply"]


@pytest.mark.parametrize("end", ["", ".", "!"])
async def test_what_was_put_off_before_is_not_lost_when_more_is(end: str) -> None:
    talk = begin()
    await talk.say(f"{FIRST} and then show my bookings{end}")
    await talk.say(f"{FIRST} in the evening and then search flights from rome to athens on 6 december")
    done = await talk.say("yes")
    assert "You have 1 booking" in done["reply"]
    assert f"Now to “show my bookings{end}”" in done["reply"]
    assert "Now to “search flights from rome to athens on 6 december”" in done["reply"]


@pytest.mark.parametrize("words", ["4 dec to 8 dec", "on 4 december, back on the 8th"])
async def test_a_flight_and_the_way_back_are_both_booked(words: str) -> None:
    talk = await after(f"book a return flight from oslo to rome {words}", "yes", "yes")
    assert await booked(talk) == [("FCO", "OSL"), ("OSL", "FCO")]


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        (f"{FIRST} and a flight from rome to athens on 6 december", "6 december"),
        ("book a flight from oslo to rome or paris on 3 december", "rome or paris"),
    ],
)
async def test_of_two_values_for_one_thing_none_is_taken_unasked(words: str, quoted: str) -> None:
    turn = await begin().say(words)
    assert "Shall I book it" not in turn["reply"]
    assert re.search(f"didn't understand “[^”]*{quoted}", turn["reply"]), turn["reply"]


async def test_all_things_of_a_list_that_are_not_had_are_named() -> None:
    turn = await begin().say("plan a trip to rome from oslo leaving 1 december with hotel and dinner")
    assert "I didn't understand “with hotel and dinner”." in turn["reply"]


@pytest.mark.parametrize("read", ["check_booking", "search_flights"])
async def test_a_model_that_reads_one_of_two_requests_loses_none(read: str) -> None:
    """NL-2: regardless of which request the model interprets."""
    slots = (
        {"origin": "oslo", "destination": "rome", "date": "3 december"} if read == "search_flights" else {}
    )
    words = "check my booking and then search flights from oslo to rome on 3 december"
    async with misled({words: as_task(read, **slots)}, "travel") as talk:
        turn = await talk.say(words)
        other = "search flights" if read == "check_booking" else "check my booking"
        assert other in turn["reply"]


async def test_what_was_put_off_grants_no_approval_that_is_open_when_it_is_read() -> None:
    """PX-17: the click was about something else, and the message was sent before."""
    talk = begin()
    for said in (
        FIRST,
        "yes",
        "book a flight from oslo to tokyo on 4 december for 4 people in business class",
        "yes",
        "cancel my booking to rome",
    ):
        await talk.say(said)
    asked = await talk.say("show my bookings and then take that flight")
    assert "After that, I'll get to “take that flight”" in asked["reply"]

    await talk.act("confirm", payload_of(asked, "confirm"))

    assert await booked(talk) == []
    put = await talk.say("approve it")
    await talk.act("approve", payload_of(put, "approve"))
    assert await booked(talk) == [("OSL", "HND")]


async def test_several_requests_that_wait_for_one_task_are_all_taken_up() -> None:
    talk = begin()
    await talk.say(f"{FIRST} and then show my bookings")
    await talk.say("book a flight from oslo to paris on 3 december and then show me flights to madrid")
    done = await talk.say("yes")
    assert await booked(talk) == [("OSL", "CDG")]
    assert "You have 1 booking" in done["reply"]
    assert "Now to “show me flights to madrid”" in done["reply"]


async def test_a_request_that_was_put_off_is_read_by_all_as_the_message_of_its_turn() -> None:
    """PX-4: missing values are searched in its own words, not in the yes to the first request."""
    asked: list[str] = []

    def find(request: Request) -> Reply:
        asked.append(request.said)
        return Answer(json={"slots": {}})

    async with scripted(Rule(prompt="slot_fill", replies=(Computed(find),))) as (_, pool):
        await after(f"{FIRST} and then search flights to athens on 6 december", "yes", models=pool)
        assert "search flights to athens on 6 december" in asked[-1]


async def test_what_is_to_be_taken_back_afterwards_is_asked_about_then() -> None:
    talk = begin()
    offer = await talk.say(f"{FIRST} and then cancel it")
    assert "After that, I'll get to “cancel it”" in offer["reply"]
    asked = await talk.say("yes")
    assert "Shall I cancel it?" in asked["reply"]
    assert await booked(talk) == [("OSL", "FCO")]
    left = await talk.say("no")
    assert left["reply"] == "OK, I'll leave that."
    assert left["flows"] == []
    assert await booked(talk) == [("OSL", "FCO")]


async def test_words_about_the_task_at_work_may_be_followed_by_another_request() -> None:
    talk = await after(FIRST)
    turn = await talk.say("stop that and then show my bookings")
    assert "stopped booking a flight. Now to “show my bookings”. You have no bookings" in turn["reply"]
