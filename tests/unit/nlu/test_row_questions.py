"""IR-5: questions about displayed rows, with or without field names."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.understanding import Cue
from orchestrator.nlu.cues import asks_for_another, find_cues
from orchestrator.nlu.row_questions import asks_about_all, find_asked_fields

FIELDS = (
    "place_name", "street_address", "phone_number", "number_of_rooms", "price_per_night", "has_wifi", "rating",
    "leaving_time",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("What is the address?", ["street_address"]),
        ("where is it", ["street_address"]),
        ("That works for me. What is the phone number and address?", ["street_address", "phone_number"]),
        ("Can you tell me their number?", ["phone_number"]),
        ("does it have wifi?", ["has_wifi"]),
        ("How much is it?", ["price_per_night"]),
        ("when does it leave?", ["leaving_time"]),
        ("May I have their user rating please?", ["rating"]),
        ("the phone number is wrong", []),
        ("What do you think?", []),
        ("book it", []),
        ("how much is a bag?", []),
        ("what does parking cost", []),
        ("is there a pool?", []),
        ("how much is it for 3?", []),
        ("what is the rating of the bar", []),
    ],
)
def test_fields_are_found_by_their_words_or_by_what_is_meant(text: str, fields: list[str]) -> None:
    assert find_asked_fields(text, FIELDS) == fields


@pytest.mark.parametrize(
    "text",
    [
        "Is there anything else?",
        "any other hotels?",
        "What else did you find?",
        "Can I hear more options please.",
        "Were those the only Psychologists you could find?",
        "show me another one",
    ],
)
def test_another_row_is_asked_for(text: str) -> None:
    assert asks_for_another(text)


@pytest.mark.parametrize(
    "text",
    [
        "Great, that sounds good.",
        "Is there anything else I need?",
        "tell me more about it",
        "Do you have more details about it?",
    ],
)
def test_other_words_ask_for_no_other_row(text: str) -> None:
    assert not asks_for_another(text)


def test_some_words_leave_things_to_what_was_said_before() -> None:
    assert Cue.AS_BEFORE in find_cues("I also need a hotel there.")
    assert Cue.AS_BEFORE in find_cues("on the same day, please")
    assert Cue.AS_BEFORE not in find_cues("is there a museum?")
    assert Cue.AS_BEFORE not in find_cues("find me a hotel in Oslo")


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("what are the outbound fares", ["price"]),
        ("which airlines", ["airline"]),
        ("what times", ["departs"]),
        ("when do they leave", ["departs"]),
        ("when do they land", []),
    ],
)
def test_fields_are_asked_for_in_the_plural_and_no_time_is_told_for_another(
    text: str, fields: list[str]
) -> None:
    assert find_asked_fields(text, ("airline", "departs", "price")) == fields


@pytest.mark.parametrize(
    ("text", "of_all"),
    [
        ("what are the fares", True),
        ("which airlines?", True),
        ("what are the outbound departure times", True),
        ("what does it cost", False),
        ("which one leaves", False),
        ("what is the price", False),
    ],
)
def test_a_noun_in_the_plural_asks_about_all_rows(text: str, of_all: bool) -> None:
    assert asks_about_all(text) is of_all
