"""IR-6, IR-7: praise at an offer is no value, and a ticket “like that” repeats the last task."""

from __future__ import annotations

import pytest

from parley.simulator import Conversation, Simulator
from tests.cases import for_each
from tests.trained import trained


async def offer_flight() -> tuple[Conversation, str]:
    """Request an offer of a flight, and return its text."""
    domain, system1 = trained("travel")
    talk = Simulator.of(domain, system1=system1).converse()
    return talk, (await talk.say("Book a flight from Oslo to Madrid tomorrow"))["reply"]


@for_each("praise", ["nice", "Nice!", "very nice", "how nice", "nice one", "nice price"])
async def test_praise_that_is_also_a_city_puts_the_offer_again(praise: str) -> None:
    talk, offer = await offer_flight()

    turn = await talk.say(praise)

    assert turn["reply"].endswith(offer)
    assert "Nice (NCE)" not in turn["reply"]
    assert "Booked" in (await talk.say("yes"))["reply"]


@for_each("change", ["to Nice please", "make it Nice", "Nice instead", "from nice"])
async def test_the_city_is_still_a_city(change: str) -> None:
    talk, _ = await offer_flight()

    assert "Nice (NCE)" in (await talk.say(change))["reply"]


@pytest.mark.parametrize("words", ["one more ticket like that", "another seat like this one"])
async def test_one_more_like_that_repeats_the_booking(words: str) -> None:
    talk, offer = await offer_flight()
    await talk.say("yes")

    turn = await talk.say(words)

    assert turn["flows"][-1]["dact"] == "book_flight"
    assert turn["reply"].endswith(offer)


async def test_one_more_like_that_at_an_offer_is_not_understood() -> None:
    talk, offer = await offer_flight()

    turn = await talk.say("one more ticket like that")

    assert turn["reply"] == f"I didn't understand “one more”. {offer}"
