"""The travel skill: trip advice, compared with search results."""

from __future__ import annotations

import json
from typing import Any

from parley.testing.scripted_model import Computed, Reply, Request, ToolUse
from tests.transcripts.skills.skilled import answer, talk

ASK = "advise me on a trip from Oslo to Madrid around Friday 27 November"
DAYS = ("2026-11-26", "2026-11-27", "2026-11-28")
SEARCH = ToolUse(
    calls=tuple(("flight_search", {"origin": "OSL", "destination": "MAD", "day": day}) for day in DAYS)
)
SYSTEM1 = {"mode": "system1"}


def found(request: Request) -> list[dict[str, Any]]:
    """Return the flights that the model has received."""
    told = [json.loads(m["content"]) for m in request.messages if m["role"] == "tool"]
    return [flight for result in told for flight in result.get("data", {}).get("flights", ())]


def advise(request: Request) -> Reply:
    """Return advice for the cheapest flight, in a model's words."""
    best = min(found(request), key=lambda flight: flight["price"])
    text = (
        f"Take {best['flight_number']}, {best['departs']} to {best['arrives']}, for {best['price']} "
        f"{best['currency']}: it is the cheapest of the three days."
    )
    return answer(advice=text, flight_number=best["flight_number"], day=best["day"])


async def test_advice_names_a_flight_that_can_be_booked_next() -> None:
    """PX-5, FS-7: three searches and advice; the booking inherits the flight."""
    replies = (SEARCH, Computed(advise))
    async with talk(*replies, domain="travel", nlu=SYSTEM1) as t:
        turn = await t.say(ASK)

        assert turn["completed"] == ["trip_advice"]
        assert [tool["tool_id"] for tool in turn["tools"]] == ["flight_search"] * 3
        assert "cheapest of the three days" in turn["reply"]
        number = turn["frame"]["data"]["flight_number"]
        assert f"book {number} on" in turn["reply"]

        booking = await t.say("book it")

        assert booking["ambiguity"]["level"] == "confirmation"
        assert number in booking["reply"]


async def test_an_invented_flight_goes_back_to_the_model() -> None:
    """PX-6: users never see flights without a search result."""
    invented = answer(advice="Take XX 999, it is free and fast.", flight_number="XX 999", day=DAYS[0])
    async with talk(SEARCH, invented, Computed(advise), domain="travel", nlu=SYSTEM1) as t:
        turn = await t.say(ASK)

        assert "no search returned a flight XX 999" in t.told()
        assert "XX 999" not in turn["reply"]
        assert turn["completed"] == ["trip_advice"]


async def test_an_invented_price_goes_back_to_the_model() -> None:
    """PX-6: every number occurs in a search result."""

    def invent(request: Request) -> Reply:
        best = min(found(request), key=lambda flight: flight["price"])
        text = f"Take {best['flight_number']}: it costs no more than 17 EUR."
        return answer(advice=text, flight_number=best["flight_number"], day=best["day"])

    async with talk(SEARCH, Computed(invent), Computed(advise), domain="travel", nlu=SYSTEM1) as t:
        turn = await t.say(ASK)

        assert "no search returned 17" in t.told()
        assert "17 EUR" not in turn["reply"]


async def test_hidden_values_are_not_shown_to_the_model() -> None:
    """CO-2, PX-5: no tool of the skill takes them, and the booking inherits the flight anyway."""
    async with talk(SEARCH, Computed(advise), domain="travel", nlu=SYSTEM1) as t:
        turn = await t.say(ASK)

        assert "flight_id" not in t.told()
        assert "fares" not in t.told()
        assert turn["completed"] == ["trip_advice"]
