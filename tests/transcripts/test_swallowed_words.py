"""No command, value or reference swallows words that request, join or limit something else (IR-6, NL-8)."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.types import DEFAULT_TENANT
from parley.simulator import Conversation
from tests.cases import for_each
from tests.trained import converse, converse_after, state_of
from tests.transcripts.test_never_the_wrong_deed import after, begin, booked
from tests.transcripts.test_other_languages import begin as begin_in

FLIGHT = "book a flight from Oslo to Rome on 3 december"


def held(talk: Conversation) -> dict[str, Any]:
    """Return the slot values of the flow on top."""
    top = state_of(talk)["stack"][-1:]
    return {name: one["value"] for name, one in top[0]["slots"].items()} if top else {}


def saved(turn: dict[str, Any]) -> list[str]:
    return [one["arguments"]["new_name"] for one in turn["tools"] if one["tool_id"] == "result_save"]


@for_each(
    "words",
    [
        f"I always fly business, so {FLIGHT}",
        f"I usually take the train but {FLIGHT}",
        f"I never pay by card. {FLIGHT}",
        f"remember that I like aisle seats and {FLIGHT}",
    ],
)
async def test_a_request_behind_a_preference_is_carried_out(words: str) -> None:
    talk = begin()
    turn = await talk.say(words)

    remembered = [one["arguments"]["preference"] for one in turn["tools"] if "preference" in one["arguments"]]
    assert all("Rome" not in one for one in remembered), remembered
    assert f"Now to “{FLIGHT}”" in turn["reply"]
    assert turn["ambiguity"]["level"] == "confirmation"
    assert await booked(talk) == []


async def test_a_preference_with_an_and_in_it_stays_one() -> None:
    turn = await begin().say("remember that I like window seats and early flights")
    assert turn["tools"][0]["arguments"]["preference"] == "I like window seats and early flights"


@for_each(
    ("words", "names"),
    [
        ("save cars as autos and stocks as shares", []),
        ("save cars as autos but not now", []),
        ("save cars as autos if you can", []),
        ("save cars as autos, please", ["autos"]),
        ("save cars as autos then export it as csv", ["autos"]),
    ],
)
async def test_a_name_ends_where_another_clause_begins(words: str, names: list[str]) -> None:
    turn = await converse("analytics").say(words)
    assert saved(turn) == names
    assert names or "I've saved" not in turn["reply"]


@for_each("words", ["Rome or Madrid", "from Rome or Madrid", "Rome or Madrid, I don't mind"])
async def test_alternatives_fill_only_one_slot(words: str) -> None:
    talk = await after("book a flight")
    turn = await talk.say(words)
    assert "Rome or Madrid" in turn["reply"]
    assert held(talk).keys().isdisjoint({"origin", "destination"})


async def test_a_value_that_replaces_the_one_before_it_leaves_the_other_slot() -> None:
    talk = await after("book a flight", "from Oslo")
    turn = await talk.say("to Rome, I mean Madrid")
    assert held(talk)["origin"] == "OSL"
    assert "“to Rome, I mean Madrid”" in turn["reply"]


async def test_a_duration_before_a_day_is_not_dropped() -> None:
    talk = begin()
    turn = await talk.say("book a flight from Oslo to Rome a week on Tuesday")
    assert "“a week on Tuesday”" in turn["reply"]
    assert "date" not in held(talk)


async def test_a_repetition_names_the_change_that_it_does_not_make() -> None:
    talk = await after(FLIGHT, "yes")
    turn = await talk.say("the same but the week after")
    assert "“the week”" in turn["reply"]


async def test_a_question_after_hang_on_is_not_a_value() -> None:
    talk = await after("book a flight", "from Oslo")
    await talk.say("hang on, is SK4035 on time?")
    assert (
        "flight_number"
        not in next(one for one in state_of(talk)["stack"] if one["dact"] == "book_flight")["slots"]
    )


async def test_the_last_one_is_not_an_hour() -> None:
    talk = await converse_after("dental", "book a checkup on 3 december")
    turn = await talk.say("the last one")
    assert "time" not in held(talk)
    assert "“last”" in turn["reply"]


async def test_a_period_in_a_name_does_not_end_a_request() -> None:
    talk = begin()
    turn = await talk.say("book a flight from Oslo to St. Anthony on 3 december")
    assert "After that" not in turn["reply"]
    assert held(talk)["date"] == "2026-12-03"


@for_each("words", ["cancel both", "cancel both bookings", "please cancel every booking"])
async def test_a_task_for_one_thing_names_the_word_for_several(words: str) -> None:
    talk = await after(FLIGHT, "yes", "book a flight from Rome to Madrid on 5 december", "yes")
    turn = await talk.say(words)
    assert f"“{'every' if 'every' in words else 'both'}”" in turn["reply"]
    assert len(await booked(talk)) == 2


async def test_a_no_at_the_end_forbids_in_german() -> None:
    turn = await begin_in("de").say("Storniere meine Buchung nicht")
    assert turn["flows"] == []
    assert "lasse ich" in turn["reply"]


async def test_a_message_too_long_to_check_starts_nothing() -> None:
    turn = await begin().say("I went to the market and bought an apple. " * 60 + FLIGHT)
    assert turn["flows"] == []
    assert "too much" in turn["reply"]


@pytest.mark.parametrize(
    ("words", "is_asked"), [("undo that", True), ("undo it please", True), ("don't undo that", False)]
)
async def test_undo_offers_to_cancel_what_was_booked(words: str, *, is_asked: bool) -> None:
    talk = await after(FLIGHT, "yes")
    turn = await talk.say(words)
    assert ("Shall I cancel it?" in turn["reply"]) is is_asked
    assert await booked(talk) == [("OSL", "FCO")]


async def test_reported_speech_is_named_by_its_own_verb() -> None:
    turn = await begin().say('my neighbor said "cancel my booking"')
    assert "“cancel a booking”" in turn["reply"]


@for_each(
    ("domain", "words"),
    [
        ("dental", "where is the station?"),
        ("travel", "did you see the game?"),
        ("analytics", "what is the meaning of life?"),
        ("lending", "can you sing?"),
    ],
)
async def test_an_unknown_question_is_neither_small_talk_nor_about_progress(domain: str, words: str) -> None:
    assert (await converse(domain).say(words))["reply"] == "Sorry, I don't know that."


async def test_the_next_task_is_named_within_the_sentence() -> None:
    talk = await after("show flights from Oslo to Madrid on Monday")
    turn = await talk.say("👌")
    assert "Would you like to book a flight now?" in turn["reply"]


async def test_a_loose_preposition_does_not_outweigh_the_open_question() -> None:
    talk = await after("book a flight to Rome")
    await talk.say("we start in Vienna")
    assert held(talk)["origin"] == "VIE"
    assert held(talk)["destination"] == "FCO"


@for_each("words", ["you booked the wrong day", "economy then"])
async def test_a_remark_about_a_task_is_not_small_talk(words: str) -> None:
    assert "Nice to hear" not in (await begin().say(words))["reply"]


@for_each("words", ["I would have booked a flight to Rome", "I should have cancelled my booking"])
async def test_an_unreal_past_requests_nothing(words: str) -> None:
    assert (await begin().say(words))["flows"] == []


@for_each(
    ("language", "words", "quote"),
    [
        ("de", "Buche einen Flug von Oslo nach Rom am Montag oder Dienstag", "„am Montag oder Dienstag“"),
        ("es", "Reserva un vuelo de Oslo a Madrid el lunes o el martes", "«el lunes o el martes»"),
    ],
)
async def test_other_languages_are_quoted_in_their_own_words(language: str, words: str, quote: str) -> None:
    assert quote in (await begin_in(language).say(words))["reply"]


@for_each(
    "words",
    [
        "please don't forget everything",
        "do not forget everything about me",
        "forget everything? No!",
        "forget everything I said about flights",
    ],
)
async def test_unrequested_things_are_not_forgotten(words: str) -> None:
    talk = await after("I always take the window seat")
    turn = await talk.say(words)
    assert turn["tools"] == []
    assert "window seat" in (await talk.say("what do you know about me"))["reply"]


@for_each("words", ["cancel it? no", "cancel it? No, thanks!", "undo it? no"])
async def test_a_no_behind_a_question_takes_the_request_back(words: str) -> None:
    talk = await after(FLIGHT, "yes")
    turn = await talk.say(words)
    assert "Shall I cancel it?" not in turn["reply"]
    assert turn["tools"] == []
    assert len(await booked(talk)) == 1


@for_each(
    "limit", ["if you can", "but not in December", "except in summer", "until June", "unless cars are empty"]
)
async def test_a_limit_that_is_not_understood_requires_a_confirmation(limit: str) -> None:
    turn = await converse("analytics").say(f"schedule a report of cars every month {limit}")
    assert turn["tools"] == []
    assert f"“{limit}”" in turn["reply"]
    assert turn["ambiguity"]["level"] == "confirmation"


@for_each(
    "words",
    [
        "save it as A and B",
        "save it as my prices and drop it",
        "could you save that as prices",
        "save it for later",
        "keep that in mind",
    ],
)
async def test_a_sentence_is_not_a_name(words: str) -> None:
    for earlier in ((), ("save it as a table",)):
        talk = await converse_after("analytics", "describe stocks", *earlier)
        assert saved(await talk.say(words)) == []


@for_each("words", ["cancel {}", "I won't need {}, cancel it"])
async def test_a_code_makes_a_cancellation_a_task(words: str) -> None:
    talk = await after(FLIGHT, "yes")
    [reference] = [
        one["booking_ref"] for one in await talk.simulator.records[DEFAULT_TENANT].find("bookings")
    ]
    await talk.say("book a flight from Rome to Rome on 5 december")
    turn = await talk.say(words.format(reference))
    assert [one["dact"] for one in turn["flows"]] == ["book_flight", "cancel_booking"]
    assert "Shall I cancel it?" in turn["reply"]


@for_each("words", ["I don't remember that", "I can't keep that in mind", "we never remember this"])
async def test_a_sentence_with_a_verb_of_memory_is_not_remembered(words: str) -> None:
    assert (await begin().say(words))["tools"] == []


@for_each(
    ("words", "quote", "kept"),
    [
        ("book a flight from Oslo to Rome or Madrid on 3 december", "to Rome or Madrid", {"origin", "date"}),
        (
            "book a flight from Oslo or Bergen to Rome on 3 december",
            "from Oslo or Bergen",
            {"destination", "date"},
        ),
        (f"{FLIGHT} or 4 december", "on 3 december or 4 december", {"origin", "destination"}),
    ],
)
async def test_alternatives_leave_the_other_values(words: str, quote: str, kept: set[str]) -> None:
    talk = begin()
    turn = await talk.say(words)
    assert f"“{quote}”" in turn["reply"]
    assert held(talk).keys() - {"cabin", "passengers"} == kept


async def test_a_message_without_known_words_starts_nothing() -> None:
    talk = await converse_after("analytics", "describe stocks", "save it as a table")
    turn = await talk.say("save cars as cars and trucks")
    assert turn["tools"] == []
    assert "“save cars as cars and trucks”" in turn["reply"]
