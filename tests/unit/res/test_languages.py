"""RS-3: every language has all templates and phrases of the runtime, with the same variables and cases."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
from jinja2 import nodes
from jinja2.meta import find_undeclared_variables

from orchestrator.adapters.domains.folder import DomainRegistry
from orchestrator.bootstrap import render_told
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import Option
from orchestrator.domain.locales import forms_for, forms_in_use
from orchestrator.domain.registry import Registry
from orchestrator.nlu.plain_yes import PlainAnswers
from orchestrator.ports.sandbox import StopCategory
from orchestrator.res.languages import languages_worded, load_base_templates, load_sayings
from orchestrator.res.steps.clarify import write_action
from orchestrator.res.templates import Templates
from orchestrator.res.wording import show_date, show_money
from orchestrator.saying import say
from orchestrator.tools.guardrails.verdict import Category
from orchestrator.types import Dact
from tests.cases import for_each
from tests.trained import trained
from tests.unit.pex.setting import make_setting
from tests.wording import parse_template

ENGLISH = "en"
OTHERS = sorted(languages_worded() - {ENGLISH})
FRIDAY = 1795780800.0
"""2026-11-27, a Friday, in Unix seconds."""


def cases_of(source: str) -> set[object]:
    """Return the constants that a template compares with, such as the reasons of a rejection."""
    compared = (one for case in parse_template(source).find_all(nodes.Compare) for one in case.ops)
    return {one.expr.value for one in compared if isinstance(one.expr, nodes.Const)}


def members_of(source: str) -> set[str]:
    """Return the members that a template reads, such as `name` of ``item.name``."""
    return {one.attr for one in parse_template(source).find_all(nodes.Getattr)}


def speak(language: str) -> Templates:
    context = make_setting().context
    return Templates(context.world.domain, Registry({}), load_base_templates(language))


@pytest.fixture
def in_language(language: str) -> Iterator[str]:
    token = forms_in_use.set(forms_for(None, language))
    yield language
    forms_in_use.reset(token)


@pytest.mark.parametrize("language", OTHERS)
def test_a_language_has_every_template_with_the_same_variables_and_cases(language: str) -> None:
    english, own = load_base_templates(ENGLISH), load_base_templates(language)

    assert own.keys() == english.keys()
    for name, source in english.items():
        for what in (lambda text: find_undeclared_variables(parse_template(text)), cases_of, members_of):
            assert what(own[name]) == what(source), name


@pytest.mark.parametrize("language", [ENGLISH, *OTHERS])
def test_every_notice_has_a_template(language: str) -> None:
    assert {kind.value for kind in NoticeKind} <= load_base_templates(language).keys()


def test_a_language_without_templates_gets_those_of_english() -> None:
    assert load_base_templates("fr") == load_base_templates(ENGLISH)
    assert load_sayings("fr") == load_sayings(ENGLISH)


@pytest.mark.parametrize("language", [ENGLISH, *OTHERS])
def test_yeses_that_are_offered_are_on_the_closed_list_of_the_language(language: str) -> None:
    """PX-18: typing a button's label or the requested word works too."""
    lexicons = trained("travel")[0].domain.lexicons
    answers, sayings = PlainAnswers(lexicons[language]), load_sayings(language)
    named = lexicons[language][0].agree[0]

    said = speak(language).render("say_yes", yes=named)

    assert named in said
    assert all(map(answers.agrees, (named, sayings["yes"], sayings["approve"])))
    assert answers.refuses(sayings["no"])
    assert not answers.agrees(sayings["no"])


@pytest.mark.parametrize(
    ("language", "label"),
    [
        ("en", "Change the date to Friday_27"),
        ("de", "Ändern: date auf Friday_27"),
        ("es", "Cambiar: date a Friday_27"),
    ],
)
def test_labels_are_plain_text_in_the_language(language: str, label: str) -> None:
    option = Option(say("change_to", slot="date", value="Friday_27"), "change_slot")

    assert write_action(option, speak(language))["label"] == label


def test_a_saying_is_escaped_once_within_a_template() -> None:
    said = speak("de").render("choose", options=[say("change", slot="*date*"), "_Oslo_"])

    assert "1. Ändern: \\*date\\*" in said
    assert "2. \\_Oslo\\_" in said


@pytest.mark.parametrize(
    ("language", "tomorrow", "later", "price"),
    [
        ("en", "tomorrow, Saturday 28 November", "Friday 1 January 2027", "€1,234.50"),
        ("de", "morgen, Samstag, 28. November", "Freitag, 1. Januar 2027", "1.234,50\xa0€"),
        ("es", "mañana, sábado, 28 de noviembre", "viernes, 1 de enero de 2027", "1.234,50\xa0€"),
    ],
)
@pytest.mark.usefixtures("in_language")
def test_days_and_amounts_are_of_the_language(tomorrow: str, later: str, price: str) -> None:
    assert show_date("2026-11-28", FRIDAY) == tomorrow
    assert show_date("2027-01-01", FRIDAY) == later
    assert show_money(1234.5, "EUR") == price


def test_a_flow_is_named_by_its_description_in_other_languages() -> None:
    """Only English names have gerunds."""
    booking = trained("travel")[0].domain.flows[Dact("book_flight")]
    spec = replace(booking.spec, language="de", description="Einen Flug buchen.", options={})

    german = type("German", (booking,), {"spec": spec})

    assert german.title == "Einen Flug buchen"


@for_each("language", OTHERS)
@for_each(("code", "reasons"), [("code_rejected", [*Category]), ("code_stopped", [*StopCategory])])
def test_reasons_of_guardrails_are_told_in_every_language(
    language: str, code: str, reasons: list[str]
) -> None:
    """PX-10: every reason with an English text has a translation."""

    def word(language: str) -> list[str]:
        templates = Templates(trained("travel")[0].domain, Registry({}), load_base_templates(language))
        return [templates.label(say(code, why=str(reason))) for reason in reasons]

    english, other = word(ENGLISH), word(language)

    assert not {*english} & {*other}
    assert [english.index(one) for one in english] == [other.index(one) for one in other]


def test_a_worker_words_replies_in_the_language_of_the_domain(tmp_path: Path) -> None:
    place = tmp_path / "treasury"
    copytree("examples/treasury", place)
    with (place / "domain.yaml").open("a") as config:
        config.write("language: {default: de, supported: [de]}\n")
    domains = DomainRegistry(str(place))

    assert render_told(domains, "treasury", say("turn_canceled")) == "Diese Anfrage wurde abgebrochen."
    assert render_told(domains, "travel", say("turn_canceled")) == "That request was canceled."
    assert render_told(domains, "gone", say("turn_canceled")) == "That request was canceled."
