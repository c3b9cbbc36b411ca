"""Recognition and removal of forgotten content (CO-4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.memory.forgetting import FORGOTTEN, REPLACES, Unwanted, collect_unwanted, tells
from orchestrator.models.templates import encode_data
from orchestrator.ports.memory.preferences import EVERYTHING, Preference, PreferenceKind, Source
from orchestrator.types import Json
from tests.cases import for_each


def said(text: str, **origin: Json) -> Preference:
    return Preference("note.x", PreferenceKind.NOTE, Source.EXPLICIT, text=text, origin=origin)


AISLE = Preference("*.seat_position", PreferenceKind.RULE, Source.EXPLICIT, "aisle", "I prefer aisle seats")
CLEARED = Preference(EVERYTHING, PreferenceKind.NOTE, Source.EXPLICIT, updated_at=5.0)
UNWANTED = collect_unwanted((said("I prefer aisle seats"), AISLE))


@for_each(
    "text",
    [
        "remember that I prefer aisle seats",
        "Forget that I like an aisle seat!",
        "USER PREFERS AISLE SEATS",
        "From what I remember about you, I'll use aisle as the seat position.",
    ],
)
def test_a_sentence_that_tells_it_goes_however_it_is_put(text: str) -> None:
    assert UNWANTED.take_out(text) == FORGOTTEN


@for_each("text", ["aisle", "Two seats are left.", "The aisle is narrow.", "", "seat_position"])
def test_what_says_something_else_and_the_value_of_a_slot_stay(text: str) -> None:
    assert UNWANTED.take_out(text) == text


def test_only_the_sentence_goes_and_the_json_around_it_keeps_its_form() -> None:
    body: Json = {
        "turn": 3,
        "messages": [{"role": "user", "text": "Hello. I prefer aisle seats! And book it."}],
        "slots": {"seat_position": {"value": "aisle", "source": "memory"}},
    }
    assert UNWANTED.take_out(body) == {
        "turn": 3,
        "messages": [{"role": "user", "text": f"Hello. {FORGOTTEN} And book it."}],
        "slots": {"seat_position": {"value": "aisle", "source": "memory"}},
    }


@pytest.mark.parametrize(
    "body",
    [
        {"dact": "book_hotel", "session": "book-hotel-1", "status": "done"},
        {"slots": {"city": {"value": "New York"}, "diet": {"value": "vegetarian"}}},
    ],
)
def test_names_and_values_of_tasks_stay_whatever_was_forgotten(body: Json) -> None:
    wishes = map(said, ("I like to book hotel", "I love New York", "I am vegetarian"))
    assert collect_unwanted(wishes).take_out(body) == body


def test_what_was_said_since_everything_was_forgotten_stays() -> None:
    unwanted = replace(collect_unwanted((CLEARED,)), kept=("Hello again, I am Bo.",))
    body: Json = {"messages": [{"text": "I am Ada."}, {"text": "Hello again, I am Bo."}]}

    assert unwanted.everything_until == 5.0
    assert unwanted.take_out(body) == {"messages": [{"text": FORGOTTEN}, {"text": "Hello again, I am Bo."}]}


def test_what_is_told_over_several_sentences_goes_as_a_whole() -> None:
    assert UNWANTED.take_out("Which seat? The aisle.") == FORGOTTEN


@pytest.mark.parametrize(
    "text",
    [
        "Read this.\n" + encode_data({"utterance": "Hello.\nvegetarian from Zürich <3"}),
        r'finish({"reason": "Z\u00fcrich\tvegetarian"})',
    ],
)
def test_what_stands_in_a_kept_prompt_goes_although_it_is_written_as_json_there(text: str) -> None:
    unwanted = collect_unwanted((said("I am a vegetarian from Zürich"),))
    body: Json = {"messages": [{"role": "user", "text": text}]}

    assert "vegetarian" not in str(unwanted.take_out(body))


def test_a_longer_statement_is_known_by_most_of_its_words() -> None:
    unwanted = collect_unwanted((said("my daughter Clara is allergic to hazelnuts and penicillin"),))

    assert unwanted.take_out("The daughter, Clara, is allergic to hazelnuts.") == FORGOTTEN
    assert unwanted.take_out("Clara flies to Rome.") == "Clara flies to Rome."


def test_what_was_said_before_a_correction_is_forgotten_with_it() -> None:
    unwanted = collect_unwanted((said("I like the window", **{REPLACES: ["I prefer aisle seats"]}),))

    assert unwanted.take_out("Remember that I prefer aisle seats") == FORGOTTEN


def test_everything_is_whatever_was_said_and_no_value_of_a_task() -> None:
    unwanted = collect_unwanted((CLEARED,))
    body: Json = {"text": "I am Ada", "turn": 1, "slots": {"to": {"value": "MAD", "text": "to Madrid"}}}

    assert unwanted.take_out(body) == {
        "text": FORGOTTEN,
        "turn": 1,
        "slots": {"to": {"value": "MAD", "text": FORGOTTEN}},
    }


def test_a_playbook_that_names_a_forgotten_value_tells_it() -> None:
    usual: Json = {"usually": {"seat_position": "aisle"}}
    playbook = Preference("playbook.choose_seat", PreferenceKind.PLAYBOOK, Source.HABIT, usual, "choose seat")

    assert tells(playbook, [AISLE])
    assert not tells(playbook, [said("I eat no meat")])


def test_nothing_is_in_a_text_when_nothing_was_forgotten() -> None:
    assert Unwanted(()).take_out("I prefer aisle seats") == "I prefer aisle seats"
