"""IR-6: praise at an offer is no value."""

from __future__ import annotations

from parley.simulator import Conversation
from tests.cases import for_each
from tests.trained import converse


async def offer_flight() -> tuple[Conversation, str]:
    """Request an offer of a flight, and return its text."""
    talk = converse("travel")
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
