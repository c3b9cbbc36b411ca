"""What is a yes to something that lasts, and what only sounds like one (PX-18)."""

from __future__ import annotations

import pytest

from orchestrator.nlu.plain_yes import agrees_politely, is_plain_yes

QUESTION = "SK1465 from Oslo (OSL) to Madrid (MAD), Tuesday, 15:30, economy, €158. Shall I book it?"


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "I'll take it",
        "go ahead",
        "let's book it",
        "Yes that's better",
        "Yes, that is what I want.",
        "Yes please. How much is that?",
        "Yes that is correct. Can you give me the phone number?",
        "Yes, that works. Thank you.",
        "Sure, where are they located at?",
        "Ok, I'll change it to that.",
        "Perfect, can you tell me their number?",
        "Yes that is confirmed, make the reservation and get me the cost details.",
        "Yes please! Do you know if they accept pets? And can you grab me the number please.",
        "👍",
        "👍🏽",
        "ok 👍",
        "yes ✈️😊",
        "sí",
        "jo",
        "yes, that's very kind of you",
        "that would be lovely, thank you",
        "I'm fine with that",
        "Tuesday is great",
    ],
)
def test_a_yes_stays_one_when_a_question_follows(text: str) -> None:
    assert is_plain_yes(text, QUESTION)


@pytest.mark.parametrize(
    "text",
    [
        "hmm let me think about whether I can afford this",
        "yes, but how much is it?",
        "thanks, I'm good",
        "I'm fine, thanks",
        "yeah right",
        "go away",
        "good for you",
        "please correct it",
        "ok that's all, thanks",
        "Madrid is lovely",
        "nice, how much for two",
        "nice, who else flies there directly",
        "perfect, when is the next one",
        "send it to me",
        "ok show me the flight",
        "I'll change it to that but on Friday",
        "I'll change it to the other one",
        "yes. but how much is it?",
        "yes if it is cheap",
        "yes? how much",
        "ok?",
        "is that ok?",
        "yes and add two bags",
        "yes and get me the window seat",
        "yes, and give me the details of another",
        "Yes. And a window seat.",
        "yes. make it two",
        "Yes. Can you make it two people?",
        "yes, what about tomorrow",
        "yes, when is the next one",
        "sure. or is there a later one?",
        "yes. i need two seats",
        "I take two",
        "thanks",
        "sorry, make it tomorrow",
        "yes, make it: economy",
        "please cancel everything",
        "Yes. How about tomorrow?",
        "Yes. Can we fly on Friday?",
        "Yes. If it is refundable?",
        "Yes. Is there anything earlier?",
        "Yes. Can you book it for 3?",
        "Yes, how about tomorrow",
        "👍?",
        "ok 👎",
        "yes 🤔",
        "yes 🤬",
        "👍 but in business",
    ],
)
def test_what_hedges_changes_or_adds_is_none(text: str) -> None:
    assert not is_plain_yes(text, QUESTION)


@pytest.mark.parametrize(
    "text", ["please drop everything", "drop all of it", "cancel everything", "drop the lot, drop anything"]
)
def test_to_drop_more_than_was_asked_about_is_none(text: str) -> None:
    assert not is_plain_yes(text, "The table cars would be gone. Shall I drop it?")


def test_to_drop_what_was_asked_about_is_one() -> None:
    assert is_plain_yes("yes, drop it", "The table cars would be gone. Shall I drop it?")
    assert is_plain_yes("yes, cancel everything", "Shall I cancel everything?")


@pytest.mark.parametrize(("text", "agrees"), [("make a note.", False), ("make the note", True)])
def test_to_ask_for_one_more_is_none(text: str, agrees: bool) -> None:
    assert is_plain_yes(text, "Adding a note:\n- body: pay the rent\n\nShall I go ahead?") is agrees


@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        ("that would be lovely, thank you", True),
        ("yes thanks", True),
        ("great, thanks", False),
        ("perfect, that's all, thanks", False),
        ("thanks", False),
    ],
)
def test_thanks_agree_only_with_a_yes_or_with_praise_of_the_offer(text: str, agrees: bool) -> None:
    assert agrees_politely(text) is agrees
