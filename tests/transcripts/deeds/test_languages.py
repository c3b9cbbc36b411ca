"""Flights booked in German and in Spanish with System 1 alone, which knows what the files of languages say (NL-10)."""

from __future__ import annotations

from functools import cache

import pytest

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.nlu.system1 import System1
from orchestrator.simulator import Conversation, Simulator
from tests.trained import trained
from tests.transcripts.test_never_the_wrong_deed import booked

GERMAN = [
    ("Hallo", "Hello"),
    ("Ich möchte am nächsten Freitag von Oslo nach Rom fliegen", "Rome (FCO), Freitag, 27. November"),
    ("Nein, lieber nach Madrid", "Madrid (MAD) statt Rome (FCO)"),
    ("Wir sind zu zweit", "2 passengers"),
    ("Wie viel Gepäck darf ich mitnehmen?", "A checked bag of up to 23 kg"),
    ("Nein", "Was möchten Sie ändern?"),
    ("doch lieber am 3. Dezember", "Donnerstag, 3. Dezember"),
    ("Da bin ich mir nicht sicher", "Shall I book it?"),
    ("Ja, gerne", "Booked."),
    ("Welche Buchungen habe ich?", "You have 1 booking"),
]
SPANISH = [
    ("Hola", "Hello"),
    ("Quiero reservar un vuelo de Oslo a Roma el próximo viernes", "Rome (FCO), viernes, 27 de noviembre"),
    ("No, mejor a Madrid", "Madrid (MAD) en lugar de Rome (FCO)"),
    ("Somos dos personas", "2 passengers"),
    ("¿Cuánto equipaje puedo llevar?", "A checked bag of up to 23 kg"),
    ("No", "¿Qué desea cambiar?"),
    ("Mejor el 3 de diciembre", "jueves, 3 de diciembre"),
    ("No estoy seguro", "Shall I book it?"),
    ("Sí, por favor", "Booked."),
    ("¿Qué reservas tengo?", "You have 1 booking"),
]
OFFERS = {"de": "Ich möchte morgen von Oslo nach Rom fliegen", "es": "Quiero volar de Oslo a Roma mañana"}
NO_YES = {
    "de": ["was kostet das denn", "ja, aber nicht so früh", "ist das der letzte?", "na ja, ich weiß nicht",
           "ja, wenn es billiger geht", "doch nicht", "blubb", "ja ja, red du nur"],
    "es": ["pues no sé qué decirte", "sí, pero más tarde", "¿es el último?", "ya veremos",
           "sí, si es más barato", "mejor no", "blubb", "si tú lo dices"],
}  # fmt: skip


@cache
def learn(code: str) -> tuple[LoadedDomain, System1]:
    sections = {"language": {"default": code, "supported": [code, "en"]}}
    english, its_system1 = trained("travel")
    loaded = Simulator.of(english, system1=its_system1, sections=sections).loaded
    return loaded, System1.for_domain(loaded.domain)


def speak(code: str) -> Conversation:
    loaded, system1 = learn(code)
    return Simulator.of(loaded, system1=system1).converse()


@pytest.mark.parametrize(("code", "lines"), [("de", GERMAN), ("es", SPANISH)])
async def test_a_flight_is_booked_with_a_change_a_no_and_a_question(
    code: str, lines: list[tuple[str, str]]
) -> None:
    talk = speak(code)
    for words, told in lines:
        turn = await talk.say(words)
        assert told in turn["reply"], words
        assert len(await booked(talk)) == (words in {"Ja, gerne", "Sí, por favor"} or "1 booking" in told)


@pytest.mark.parametrize(("code", "words"), [(code, one) for code, some in NO_YES.items() for one in some])
async def test_what_is_not_understood_word_by_word_is_no_yes(code: str, words: str) -> None:
    """PX-18, in a language whose words are data: one that no file has agrees to nothing."""
    talk = speak(code)
    assert "Shall I book it?" in (await talk.say(OFFERS[code]))["reply"]
    await talk.say(words)
    assert await booked(talk) == []
