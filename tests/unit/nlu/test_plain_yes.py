"""Plain confirmations, and messages that only sound like one (PX-18)."""

from __future__ import annotations

from functools import cache

import pytest

from orchestrator.nlu.plain_yes import NO_OFFER, Offer, PlainAnswers
from orchestrator.nlu.text import Lexicon
from tests.trained import trained

QUESTION = "SK1465 from Oslo (OSL) to Madrid (MAD), Tuesday, 15:30, economy, €158. Shall I book it?"
OFFER = Offer.of(QUESTION, "book_flight", ["OSL", "Madrid"])
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


@cache
def answers(code: str) -> PlainAnswers:
    lexicons = trained("travel")[0].domain.lexicons
    return PlainAnswers(lexicons[code], lexicons["en"])


@pytest.mark.parametrize(
    "text",
    ["yes", "Yes!", "yes please", "OK.", "ok, thanks", "sure, go ahead", "please do", "yes, book it", "book it",
     "book it please", "please book the flight", "book SK1465", "yes, book SK1465", "yes, to Madrid, please",
     "👍", "👍🏽", "ok 👍", "I agree", "of course, thank you very much", "yes - book this flight now",
     "yes, that's right"],
)  # fmt: skip
def test_a_closed_list_says_yes(text: str) -> None:
    assert answers("en").agrees(text, OFFER)


@pytest.mark.parametrize(
    "text",
    ["it was great", "great, thanks", "ok, how much is it", "yes?", "yes, how much is it?", "yes...", "yeah yeah",
     "yes, but later", "yes to Oslo and Rome", "thanks", "please", "book", "book it twice", "book another flight",
     "don't book it", "sounds good", "perfect", "SK1465", "to Madrid", "yes, SK9999", "yes, the flight is late",
     "cancel it", "yes 🤔", "ok 👎", "yes no", "sure, whatever", "", "  ", "!", "yes " * 20],
)  # fmt: skip
def test_nothing_else_does(text: str) -> None:
    assert not answers("en").agrees(text, OFFER)


@pytest.mark.parametrize(
    ("text", "agrees"),
    [("delete the rows", True), ("delete them", True), ("book it", False), ("delete everything", False),
     ("delete that", False), ("yes, delete that", True), ("confirm the rows", False)],
)  # fmt: skip
def test_a_deed_counts_only_where_it_is_offered(text: str, agrees: bool) -> None:
    offer = Offer.of("79 rows of cars would be gone. Shall I delete the rows?", "delete_rows", [])
    assert answers("en").agrees(text, offer) is agrees


def test_to_change_it_asks_for_something_else() -> None:
    offer = Offer.of("Sunday instead of Friday. Shall I change it?", "change_booking", [])
    assert not answers("en").agrees("change it", offer)
    assert answers("en").agrees("yes, change it", offer)


def test_asking_for_the_task_again_is_not_a_yes_to_doing_it_twice() -> None:
    """RT-9"""
    offer = Offer.of("Doing it again would do it twice. Shall I do it again anyway?", "book_flight", [])
    assert not answers("en").agrees("book the flight", offer)


@pytest.mark.parametrize(
    ("code", "text", "agrees"),
    [("de", "ja", True), ("de", "Ja, bitte!", True), ("de", "gerne, danke", True), ("de", "ja, buche es", True),
     ("de", "ja ja", False), ("de", "ja, aber später", False), ("de", "das war gut", False),
     ("de", "bitte", False), ("es", "Sí, por favor", True), ("es", "vale, gracias", True),
     ("es", "claro que sí", True), ("es", "sí, pero más tarde", False), ("es", "perfecto", False),
     ("es", "si tú lo dices", False)],
)  # fmt: skip
def test_each_language_has_its_list(code: str, text: str, agrees: bool) -> None:
    english = Lexicon(trained("travel")[0].domain.lexicons[code]).to_english(text)
    assert answers(code).agrees(text, OFFER, english) is agrees


@pytest.mark.parametrize("code", YESES)
def test_plain_yeses_are_taken(code: str) -> None:
    assert [text for text in YESES[code] if not answers(code).agrees(text, OFFER, text)] == []


def test_a_plain_no_is_closed_as_well() -> None:
    assert answers("en").refuses("no, thanks")
    assert not answers("en").refuses("no, on Friday")
    assert not answers("en").agrees("no", NO_OFFER)
