"""Every assistant answers thanks, goodbyes, complaints, and questions about itself. None is a yes or value."""

from __future__ import annotations

import pytest

from tests.cases import for_each
from tests.trained import converse
from tests.transcripts.test_never_the_wrong_deed import OFFER, after, begin, booked


@for_each(
    ("words", "told"),
    [
        ("thx!", "You're welcome."),
        ("Thank you, bye", "Goodbye!"),
        ("gotta go, thanks", "Goodbye!"),
        ("ugh, this is annoying", "I'm sorry about that."),
        ("ugh this is ridiculous, you keep asking the same thing", "I'm sorry about that."),
        ("you are useless", "I'm sorry about that."),
        ("are you a real person?", "a program"),
        ("are you sure?", "don't change anything until you say yes"),
    ],
)
async def test_a_domain_without_answers_of_its_own_has_them(words: str, told: str) -> None:
    talk = converse("lending")
    assert told in (await talk.say(words))["reply"]


async def test_a_domains_own_answer_takes_precedence() -> None:
    assert (await begin().say("gotta go"))["reply"] == "Goodbye, and have a good trip!"


@for_each(
    "words",
    ["thanks", "thanks, you're the best", "are you sure?", "ugh, what a mess", "what did you just say?"],
)
async def test_beside_an_offer_it_is_no_yes_and_the_offer_is_put_again(words: str) -> None:
    """PX-18"""
    talk = begin()
    offer = await talk.say(OFFER)
    turn = await talk.say(words)
    assert turn["reply"].endswith(offer["reply"])
    assert await booked(talk) == []


@pytest.mark.parametrize("words", ["bye", "thanks, goodbye", "see you later"])
async def test_a_goodbye_closes_an_offer(words: str) -> None:
    """PX-18: a later yes answers nothing."""
    talk = await after(OFFER)

    turn = await talk.say(words)

    assert turn["flows"] == []
    assert turn["reply"].endswith("Goodbye, and have a good trip!")
    await talk.say("yes")
    assert await booked(talk) == []


async def test_what_was_said_is_said_again() -> None:
    talk = begin()
    first = await talk.say("list my bookings")
    assert (await talk.say("what did you say?"))["reply"] == first["reply"]


@for_each("praise", ["nice", "Nice!", "very nice", "how nice", "nice one", "nice price"])
async def test_praise_that_is_also_a_city_puts_the_offer_again(praise: str) -> None:
    """IR-6"""
    talk = begin()
    offer = await talk.say(OFFER)

    turn = await talk.say(praise)

    assert turn["reply"].endswith(offer["reply"])
    assert "Nice (NCE)" not in turn["reply"]
    assert "Booked" in (await talk.say("yes"))["reply"]


@for_each("change", ["to Nice please", "make it Nice", "Nice instead", "from nice"])
async def test_the_city_is_still_a_city(change: str) -> None:
    talk = await after(OFFER)

    assert "Nice (NCE)" in (await talk.say(change))["reply"]
