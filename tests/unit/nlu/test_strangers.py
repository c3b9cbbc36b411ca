"""Generated sentences that are not plain confirmations, and forbidden or reported requests (PX-18, NL-8)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from orchestrator.dialogue.understanding import MessageKind, Understanding
from orchestrator.nlu.module import NLU
from orchestrator.nlu.plain_yes import Offer
from parley.simulator import Simulator
from tests.trained import trained
from tests.transcripts.test_never_the_wrong_deed import OFFER, begin, booked
from tests.unit.nlu.flights import FakeTurn
from tests.unit.nlu.strangers import not_a_yes, not_requested
from tests.unit.nlu.test_plain_yes import answers
from tests.unit.nlu.test_travel import state

OFFERS = [
    Offer.of("SK1465 from Oslo (OSL) to Rome (FCO), tomorrow, €158. Shall I book it?", "book_flight", ["OSL", "FCO"]),
    Offer.of("Booking LLTUZ5: SK1465. €288 would be refunded. Shall I cancel it?", "cancel_booking", ["LLTUZ5"]),
    Offer.of("79 rows of cars would be gone. Shall I delete the rows?", "delete_rows", ["cars"]),
    Offer.of("1. Book the flight out 2. Book the flight back. Shall I go ahead?", "plan_trip", ["OSL", "FCO"]),
]  # fmt: skip
YESES = {
    "en": ["yes", "Yes.", "yes please", "yeah", "yep", "ok", "OK!", "okay, thanks", "sure", "of course", "go ahead",
           "please go ahead", "please do", "do it", "yes, do it", "confirm", "I agree", "agreed", "👍",
           "sure, thank you"],
    "de": ["ja", "Ja!", "ja bitte", "ja, gerne", "jawohl", "ok", "okay", "in Ordnung", "klar", "na klar", "natürlich",
           "selbstverständlich", "gerne", "gern, danke", "einverstanden", "mach das", "ja, machen Sie das",
           "ich bestätige", "👍", "ja, vielen Dank"],
    "es": ["sí", "Sí.", "sí, por favor", "si", "claro", "claro que sí", "por supuesto", "desde luego", "vale", "ok",
           "de acuerdo", "adelante", "hazlo", "sí, hazlo", "confirmo", "acepto", "estoy de acuerdo", "👍",
           "vale, gracias", "sí, muchas gracias"],
}  # fmt: skip


def test_there_are_enough_of_them() -> None:
    assert len(not_a_yes()) >= 470
    assert len(not_requested()) >= 180


@pytest.mark.parametrize("offer", OFFERS, ids=["booking", "cancellation", "deletion", "plan"])
def test_nothing_of_it_is_a_plain_yes(offer: Offer) -> None:
    """PX-18: a confirmation that a model reads is not plain either."""
    assert [text for text in not_a_yes() if answers("en").agrees(text, offer)] == []


@pytest.mark.parametrize("code", YESES)
def test_plain_yeses_are_taken(code: str) -> None:
    assert [text for text in YESES[code] if not answers(code).agrees(text, OFFERS[0], text)] == []


async def think(nlu: NLU, text: str) -> Understanding:
    return await nlu.think(text, state(), cast("Any", FakeTurn()))


async def test_what_is_not_requested_is_not_started() -> None:
    """NL-8: forbidden, past, reported and supposed requests."""
    loaded, system1 = trained("travel")
    nlu = NLU(loaded.domain, system1=system1)
    started = []
    for text, deed in not_requested():
        understood = await think(nlu, text)
        if understood.kind is MessageKind.TASK and understood.flows[0].dact.split("_")[0] == deed:
            started.append(text)
    assert started == []


@pytest.mark.parametrize("text", not_a_yes()[::25])
async def test_the_agent_books_nothing_for_it(text: str) -> None:
    talk = begin()
    await talk.say(OFFER)
    await talk.say(text)
    assert await booked(talk) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("don't cancel my booking", "I won't"),
        ("don’t cancel my booking", "I won't"),
        ("I already booked a flight to Madrid", "already done"),
        ("my colleague wants to know whether you can cancel a booking", "someone else"),
        ("flights from Oslo to Lisbon on Sunday, but not in the evening", "“not in the evening”"),
    ],
)
async def test_it_is_said_how_it_was_understood(text: str, told: str) -> None:
    loaded, system1 = trained("travel")
    turn = await Simulator.of(loaded, system1=system1).converse().say(text)
    assert told in turn["reply"]


async def test_a_request_beside_what_is_forbidden_is_carried_out() -> None:
    loaded, system1 = trained("travel")
    turn = await Simulator.of(loaded, system1=system1).converse().say(f"don't cancel my booking, {OFFER}")
    assert turn["ambiguity"]["level"] == "confirmation"
    assert "Rome" in turn["reply"]


@pytest.mark.parametrize("text", ["please don't forget to {}", "why don't you {}", "{}, but not a late one"])
async def test_a_request_with_a_no_in_it_is_still_one(text: str) -> None:
    loaded, system1 = trained("travel")
    turn = await Simulator.of(loaded, system1=system1).converse().say(text.format(OFFER))
    assert turn["flows"][0]["dact"] == "book_flight" if turn["flows"] else False
