"""NL-10, RS-3: a German and a Spanish assistant without a model: interpretation, actions, replies.

The travel domain's own texts are English, but the runtime's texts are not.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import pytest
from jinja2 import nodes

from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.nlu.system1 import System1
from orchestrator.res.languages import load_base_templates
from orchestrator.turns.turn import Submission, TurnInput
from orchestrator.types import JsonObject
from parley.simulator import Conversation, Simulator
from parley.testing.inbox import MemoryInbox
from tests.cases import for_each
from tests.transcripts.test_never_the_wrong_deed import booked
from tests.wording import parse_template

PEOPLE: Final = {"de": "Reisende", "es": "viajeros"}
FEWEST_WORDS: Final = 3
"""Minimum length of a template fragment that differs from the domain's own words."""


@cache
def learned(language: str, folder: str) -> tuple[LoadedDomain, System1]:
    """Load a domain with another `language.default`, and with a slot named by its author."""
    place = Path(mkdtemp()) / Path(folder).name
    shutil.copytree(folder, place)
    ontology = place / "ontology.yaml"
    ontology.write_text(
        ontology.read_text().replace("counts: people,", f"counts: people, label: {PEOPLE[language]},")
    )
    config = place / "domain.yaml"
    own = config.read_text() if config.exists() else ""
    config.write_text(f"{own}\nlanguage: {{default: {language}, supported: [{language}]}}\n")
    loaded = load_domain(place)
    return loaded, System1.for_domain(loaded.domain)


def begin(language: str, folder: str = "domains/travel", **services: object) -> Conversation:
    loaded, system1 = learned(language, folder)
    return Simulator.of(loaded, system1=system1, services=services or None).converse()


@cache
def english_fragments() -> frozenset[str]:
    """Return the fixed texts between variables in the runtime's English templates."""
    found = (part for source in load_base_templates().values() for part in _texts(parse_template(source)))
    parts = {part.strip(" .,:;!?“”()") for text in found for part in re.split(r"[.?!:\n]", text)}
    return frozenset(part for part in parts if len(part.split()) >= FEWEST_WORDS)


def _texts(tree: nodes.Template) -> Iterator[str]:
    yield from (one.data for one in tree.find_all(nodes.TemplateData))
    yield from (one.value for one in tree.find_all(nodes.Const) if isinstance(one.value, str))


async def hold(talk: Conversation, lines: list[tuple[str, str]]) -> list[JsonObject]:
    """Send the lines in order. Each reply has its text, and no English sentence of the runtime."""
    turns: list[JsonObject] = []
    for said, told in lines:
        turn = await talk.say(said)
        labels = " ".join(one["label"] for one in turn["actions"])
        assert told in turn["reply"], (said, turn["reply"])
        wrong = [one for one in english_fragments() if one in f"{turn['reply']} {labels}"]
        assert wrong == [], (said, turn["reply"], wrong)
        turns.append(turn)
    return turns


GERMAN: Final = [
    ("Ich möchte einen Flug von Oslo nach Madrid buchen", "What day"),
    ("am 31. Februar", "Einen 31. Februar gibt es nicht."),
    ("Warum fragst du?", "Ich frage, weil ich diese Angabe für „Book a flight“ brauche"),
    ("Hilfe", "I can search for flights"),
    ("morgen", "morgen, Samstag, 21. November"),
    ("klingt toll", "Das habe ich nicht verstanden: „klingt“. Wenn Sie ja meinen, sagen Sie bitte nur „ja“."),
    ("lieber übermorgen", "Sonntag, 22. November statt morgen, Samstag, 21. November."),
    ("nein", "Gut, dann lasse ich das. Was möchten Sie ändern?"),
    ("blubber", "Das habe ich nicht verstanden: „blubber“."),
    ("ja", "Shall I book it?"),
    ("wir sind zu zweit", "454"),
]
SPANISH: Final = [
    ("Quiero reservar un vuelo de Oslo a Madrid", "What day"),
    ("el 31 de febrero", "El 31 de febrero no existe."),
    ("¿Por qué lo preguntas?", "Lo pregunto porque necesito este dato para «Book a flight»"),
    ("ayuda", "I can search for flights"),
    ("mañana", "mañana, sábado, 21 de noviembre"),
    ("suena genial", "No he entendido «suena». Si quiere decir que sí, diga solo «sí», por favor."),
    ("mejor pasado mañana", "domingo, 22 de noviembre en lugar de mañana, sábado, 21 de noviembre."),
    ("no", "De acuerdo, no lo hago. ¿Qué desea cambiar?"),
    ("blablu", "No he entendido «blablu»."),
    ("sí", "Shall I book it?"),
    ("somos dos", "454"),
]
YES: Final = {"de": "ja", "es": "sí"}
OFFERS: Final = {
    "de": "Ich möchte morgen von Oslo nach Rom fliegen",
    "es": "Quiero volar de Oslo a Roma mañana",
}
NO_YES: Final = {
    "de": ["was kostet das denn", "ja, aber nicht so früh", "ist das der letzte?", "na ja, ich weiß nicht",
           "ja, wenn es billiger geht", "doch nicht", "blubb", "ja ja, red du nur"],
    "es": ["pues no sé qué decirte", "sí, pero más tarde", "¿es el último?", "ya veremos",
           "sí, si es más barato", "mejor no", "blubb", "si tú lo dices"],
}  # fmt: skip


@pytest.mark.parametrize(("language", "lines"), [("de", GERMAN), ("es", SPANISH)])
async def test_a_booking_is_talked_about_and_a_yes_books_it(
    language: str, lines: list[tuple[str, str]]
) -> None:
    talk = begin(language)

    before = await hold(talk, lines)
    done, *after = await hold(talk, [(YES[language], "Booked."), (YES[language], "")])

    (deed,) = [tool for turn in (done, *after) for tool in turn["tools"] if tool["tool_id"] == "flight_book"]
    assert not any(tool["tool_id"] == "flight_book" for turn in before for tool in turn["tools"])
    assert deed == {
        "tool_id": "flight_book",
        "arguments": {"offer_id": "OSL-MAD-2026-11-22-IB5766:economy:2"},
        "status": "ok",
    }
    assert before[4]["actions"][0]["label"].casefold() == YES[language]


@for_each(("language", "words"), [(language, one) for language, some in NO_YES.items() for one in some])
async def test_only_the_words_of_the_language_file_are_a_yes(language: str, words: str) -> None:
    """PX-18."""
    talk = begin(language)
    assert "Shall I book it?" in (await talk.say(OFFERS[language]))["reply"]
    await talk.say(words)
    assert await booked(talk) == []


@pytest.mark.parametrize(
    ("language", "ask", "failed"),
    [
        ("de", "Welche Buchungen habe ich", "“ hat nicht funktioniert."),
        ("es", "Muéstrame mis reservas", "» no ha funcionado."),
    ],
)
async def test_a_failing_tool_is_told_in_the_language(language: str, ask: str, failed: str) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            def fail(**_: object) -> object:
                raise RuntimeError(name)

            return fail

    (turn,) = await hold(begin(language, Bookings=Broken()), [(ask, failed)])

    assert turn["flags"]["has_issues"]


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        (
            "de",
            [
                ("danke", "Gern geschehen."),
                ("auf wiedersehen", "Auf Wiedersehen!"),
                ("das nervt", "Das tut mir leid."),
                ("bist du ein bot", "ein Programm."),
                ("ganz sicher?", "tue nichts, bevor Sie ja sagen"),
                ("ja", "Im Moment habe ich keine Frage offen."),
                ("abbrechen", "Im Moment gibt es nichts abzubrechen."),
                ("mit einem Menschen sprechen", "Ich habe jemanden gebeten"),
            ],
        ),
        (
            "es",
            [
                ("gracias", "De nada."),
                ("adiós", "¡Adiós!"),
                ("esto no funciona", "Lo siento."),
                ("eres un bot", "un programa."),
                ("¿está seguro?", "no hago nada antes de que usted diga que sí"),
                ("sí", "Ahora mismo no tengo ninguna pregunta pendiente."),
                ("cancelar", "Ahora mismo no hay nada que cancelar."),
                ("hablar con una persona", "He pedido a una persona"),
            ],
        ),
    ],
)
async def test_talk_that_every_assistant_answers(language: str, lines: list[tuple[str, str]]) -> None:
    await hold(begin(language, "tests/domains/lending"), lines)


@for_each(
    ("language", "words"),
    [
        ("de", "Ich will keinen Flug buchen"),
        ("de", "Ich möchte keinen Flug von Oslo nach Madrid"),
        ("es", "No quiero reservar un vuelo"),
        ("es", "No deseo un vuelo de Oslo a Madrid"),
    ],
)
async def test_a_task_that_is_not_wanted_is_not_started(language: str, words: str) -> None:
    """NL-8"""
    turn = await begin(language).say(words)

    assert (turn["flows"], turn["tools"]) == ([], [])


@pytest.mark.parametrize(
    ("language", "reason"),
    [
        ("de", "nachdem private Daten gelesen wurden (List salaries) und Text von außen hereinkam"),
        ("es", "después de haber leído datos privados (List salaries) y de haber recibido texto de fuera"),
    ],
)
async def test_the_reason_of_an_approval_is_told_in_the_language(language: str, reason: str) -> None:
    """PX-3"""
    talk = begin(language, "tests/domains/mailroom")

    await hold(
        talk, [("read the web page", "Eve"), ("list the salaries", "ann"), ("send a mail to Eve", reason)]
    )


@pytest.mark.parametrize(
    ("language", "told"),
    [("de", "Diese Anfrage wurde abgebrochen."), ("es", "Esa petición se ha cancelado.")],
)
async def test_a_turn_that_no_agent_answers_is_told_in_the_language(language: str, told: str) -> None:
    """RT-6"""
    talk = begin(language)
    await talk.say("hola")
    inbox = MemoryInbox(talk.simulator.store)

    receipt = await inbox.submit(Submission(talk.session_id, TurnInput(text="hallo"), talk.tenant_id))
    ended = await inbox.cancel(talk.tenant_id, receipt.turn_id)

    assert ended.result is not None
    assert ended.result["reply"] == told


@pytest.mark.parametrize(
    ("language", "lines"),
    [
        ("de", ["Ich möchte einen Flug von Oslo nach Madrid buchen", "morgen", "für 40 Personen"]),
        ("es", ["Quiero reservar un vuelo de Oslo a Madrid", "mañana", "para 40 personas"]),
    ],
)
async def test_a_slot_has_the_name_that_its_author_gave_it(language: str, lines: list[str]) -> None:
    *_, turn = [await talk.say(line) for talk in [begin(language)] for line in lines]

    assert PEOPLE[language] in turn["reply"]
    assert "passengers" not in turn["reply"]


def test_fragments_of_english_are_found() -> None:
    assert {"I'll tell you here as soon as I know the result", "This can't be undone"} <= english_fragments()
