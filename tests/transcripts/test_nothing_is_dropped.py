"""During an offer, every content word is used or quoted, and nothing is done in that turn (IR-6)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from parley.simulator import Conversation
from tests.cases import for_each
from tests.trained import state_of
from tests.transcripts.corrections_beside_offers import CORRECTIONS
from tests.transcripts.test_misled_by_a_model import as_task, misled
from tests.transcripts.test_never_the_wrong_deed import after, begin, booked

OFFER = "book a flight from oslo to rome on 3 december for 2 people in economy"
OFFERED = {"origin": "OSL", "destination": "FCO", "date": "2026-12-03", "cabin": "economy", "passengers": "2"}


def held(talk: Conversation) -> dict[str, str]:
    """Return the booking's values, or an empty dictionary if it is not running."""
    state = state_of(talk)
    top = state["stack"][-1:]
    slots = top[0]["slots"] if top and top[0]["dact"] == "book_flight" else {}
    return {name: str(one["value"]) for name, one in slots.items()}


def quoted(turn: dict[str, Any]) -> str:
    return " ".join(re.findall(r"“([^”]*)”", turn["reply"])).casefold()


def find_fault(
    values: dict[str, str], turn: dict[str, Any], taken: dict[str, tuple[str, ...]], word: str
) -> str | None:
    """Return the dropped words, or None if all were used, quoted or asked about."""
    if not values or turn["ambiguity"]["level"] != "confirmation":
        return None
    is_quoted = bool(word) and word in quoted(turn)
    if not is_quoted and word:
        return f"“{word}” is neither taken nor quoted"
    for name, old in OFFERED.items():
        new = values.get(name, old)
        if new != old and new not in taken.get(name, ()):
            return f"{name} became {new}"
    missing = [name for name, wanted in taken.items() if values.get(name) not in wanted]
    return f"{missing} not taken" if missing and not is_quoted else None


@pytest.fixture
async def offered() -> Conversation:
    """Return a conversation with an offer. Each case talks in its own branch."""
    talk = begin()
    offer = await talk.say(OFFER)
    assert offer["ambiguity"]["level"] == "confirmation"
    return talk


@for_each(("words", "taken", "word"), CORRECTIONS, ids=[one[0] for one in CORRECTIONS])
async def test_a_correction_beside_an_offer_is_taken_or_quoted(
    offered: Conversation, words: str, taken: dict[str, tuple[str, ...]], word: str
) -> None:
    talk = offered.branch()
    turn = await talk.say(words)
    assert await booked(talk) == []
    assert find_fault(held(talk), turn, taken, word) is None, turn["reply"]


@for_each(
    ("words", "changed"),
    [
        ("let me think about it", {}),
        ("no, don't book that", {}),
        ("what about sunday instead", {"date": "2026-12-06"}),
        ("and what about sunday?", {"date": "2026-12-06"}),
        ("how about business class", {"cabin": "business"}),
    ],
)
async def test_a_word_that_says_nothing_is_not_quoted(
    offered: Conversation, words: str, changed: dict[str, str]
) -> None:
    talk = offered.branch()
    turn = await talk.say(words)
    assert quoted(turn) == "", turn["reply"]
    assert await booked(talk) == []
    assert {**OFFERED, **changed}.items() <= held(talk).items()


@for_each("words", ["fly Oslo - Rome on 3 december", "I want to fly Oslo – Rome on 3 december"])
async def test_a_dash_stands_between_two_names(words: str) -> None:
    talk = begin()
    turn = await talk.say(words)
    assert {name: held(talk)[name] for name in ("origin", "destination", "date")} == {
        name: OFFERED[name] for name in ("origin", "destination", "date")
    }, turn["reply"]


@for_each(
    "heard",
    [
        {"kind": "confirmation"},
        {"kind": "chitchat"},
        {"kind": "slot_value", "slots": {"passengers": 2}},
        {"kind": "correction", "slots": {"cabin": "economy"}},
        as_task("book_flight", origin="Oslo", destination="Rome", date="2026-12-03"),
    ],
)
@for_each(
    ("words", "word"),
    [("my wife stays at home", "stays"), ("we bring a cello", "cello"), ("only with Lufthansa", "lufthansa")],
)
async def test_what_a_model_drops_is_quoted(heard: dict[str, Any], words: str, word: str) -> None:
    slots = {
        "origin": "Oslo",
        "destination": "Rome",
        "date": "2026-12-03",
        "passengers": 2,
        "cabin": "economy",
    }
    async with misled({OFFER: as_task("book_flight", **slots), words: heard}, "travel") as talk:
        offer = await talk.say(OFFER)
        assert offer["ambiguity"]["level"] == "confirmation"
        turn = await talk.say(words)
        assert word in quoted(turn), turn["reply"]
        assert turn["ambiguity"]["level"] == "confirmation"
        assert await booked(talk) == []


@for_each(
    "words",
    [
        "the same but for friday",
        "book the same flight but on friday",
        "another one for friday",
        "same again on friday please",
        "do that again but for friday",
    ],
)
async def test_the_same_copies_what_was_done_last(words: str) -> None:
    """IR-7: other values than the day are copied from the booked flight."""
    talk = await after("book a flight from oslo to paris on monday in business class for 2 people", "yes")
    offer = await talk.say(words)
    assert await booked(talk) == [("OSL", "CDG")]
    values = held(talk)
    assert (values["origin"], values["destination"], values["date"]) == ("OSL", "CDG", "2026-11-27")
    assert (values["cabin"], values["passengers"]) == ("business", "2")
    assert offer["ambiguity"]["level"] == "confirmation"
    await talk.say("yes")
    assert await booked(talk) == [("OSL", "CDG"), ("OSL", "CDG")]


@for_each("words", ["how much is a bag?", "what does lunch cost", "is there wifi on board?"])
async def test_a_question_about_something_else_gets_no_field_of_the_offer(
    offered: Conversation, words: str
) -> None:
    """IR-7: only words for a field ask about the offered flight."""
    turn = await offered.branch().say(words)
    assert not re.search(r"(?:price|arrives|departs): ", turn["reply"]), turn["reply"]
    assert turn["ambiguity"]["level"] == "confirmation"


@for_each(
    ("said", "asked", "flow"),
    [
        (("book a flight", "is SK 1465 on time"), "Which flight", "check_flight_status"),
        (("cancel a booking", "is DY828 delayed?"), "Which flight", "check_flight_status"),
        (("book a flight", "has SK1465 landed yet?"), "Which flight", "check_flight_status"),
        (("book a flight from oslo", "write me a poem"), "fly to", "book_flight"),
        (("book a flight from oslo", "2"), "fly to", "book_flight"),
        (("book a flight from oslo", "the first"), "fly to", "book_flight"),
        (("book a flight from oslo to rome", "why is monday so expensive?"), "day", "book_flight"),
        (("book a flight from oslo", "where is Bergen?"), "fly to", "book_flight"),
        (
            ("book a flight from oslo", "I was told it is nice in Lisbon"),
            "Where would you like to fly to",
            "book_flight",
        ),
    ],
)
async def test_a_question_fills_no_slot(said: tuple[str, ...], asked: str, flow: str) -> None:
    """IR-7: also with one of two names for the same slot."""
    talk = begin()
    *first, question = said
    for words in first:
        await talk.say(words)
    before = held(talk)
    turn = await talk.say(question)
    state = state_of(talk)
    top = state["stack"][-1]
    assert (asked in turn["reply"], top["dact"]) == (True, flow), turn["reply"]
    assert held(talk) in ({}, before)


@for_each("words", ["is monday possible?", "what about monday", "how about monday?"])
async def test_a_proposal_in_a_question_is_an_answer(words: str) -> None:
    talk = await after("book a flight from oslo to rome")
    turn = await talk.say(words)
    assert "Monday 23 November" in turn["reply"]


@for_each("words", ["I prefer Vienna", "Vienna sounds lovely", "I'd love Vienna"])
async def test_a_place_that_is_only_liked_is_asked_about(offered: Conversation, words: str) -> None:
    """IR-5: for origin or destination, and nothing else."""
    talk = offered.branch()
    turn = await talk.say(words)

    assert [one["label"] for one in turn["actions"][:2]] == [
        "Change the origin to Vienna (VIE)",
        "Change the destination to Vienna (VIE)",
    ]
    assert {name: value for name, value in held(talk).items() if name in OFFERED} == OFFERED


@for_each("words", ["tell me that again please", "one more bag please", "show it again to me"])
async def test_what_is_not_the_task_is_not_done_once_more(words: str) -> None:
    talk = await after(OFFER, "yes")

    turn = await talk.say(words)

    assert "book_flight" not in {flow["dact"] for flow in turn["flows"]}


@for_each("words", ["cancel my Berlin booking", "cancel booking Munich", "show me my Madrid booking"])
async def test_a_city_is_no_mistyped_reference(words: str) -> None:
    turn = await begin().say(words)
    assert quoted(turn) in words.lower().split(), turn["reply"]
    assert "valid" not in turn["reply"]
    assert "What is your booking reference?" in turn["reply"]
