"""Templates of both domains with missing optional outputs: the answer is never empty (RS-3)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Frame
from orchestrator.dialogue.specification import Family
from orchestrator.domain.model import Domain
from orchestrator.domain.registry import Registry
from orchestrator.res.languages import load_base_templates
from orchestrator.res.steps.generate import context_of, render_completed
from orchestrator.res.templates import Templates
from orchestrator.types import Dact, JsonObject
from tests.cases import for_each
from tests.unit.pex.setting import make_setting

PARTIAL: tuple[JsonObject, ...] = (
    {},
    {"rows": []},
    {"rows": [{}], "found": {}, "summary": ""},
    {"rows": None, "found": None, "summary": None},
)


@cache
def made(name: str) -> tuple[Domain, Templates, Registry]:
    domain = load_domain(name).domain
    registry = Registry(domain.entities)
    return domain, Templates(domain, registry, load_base_templates()), registry


def a_world(name: str) -> TurnContext:
    domain, _, registry = made(name)
    context = make_setting().context
    return replace(context, world=replace(context.world, domain=domain, registry=registry))


def tell(name: str, dact: str, data: JsonObject) -> tuple[str, str]:
    """Return the template that was used, and its text."""
    domain, templates, _ = made(name)
    context = a_world(name)
    flow: BaseFlow = domain.flows[Dact(dact)](context.now)
    context.changes.findings[flow.flow_id] = data
    return render_completed(context, flow, templates)


@for_each("name", ["travel", "analytics"])
@for_each("data", PARTIAL)
def test_every_flow_is_told_whatever_its_tools_left_out(name: str, data: JsonObject) -> None:
    domain, _, _ = made(name)
    dacts = [flow.spec.dact for flow in domain.flows.values() if flow.spec.family is not Family.INTERNAL]
    assert {dact for dact in dacts if not tell(name, dact, data)[1]} == set()


@for_each(
    ("found", "told"),
    [
        ({}, "is planned."),
        ({"book_outbound": {"booking_ref": "AB12CD"}}, "is planned and booked. Outbound: AB12CD."),
        ({"book_outbound": {"flights": []}, "book_return": None}, "is planned."),
        (
            {"book_outbound": {"flights": []}, "book_return": {"booking_ref": "AB12CD"}},
            "is planned and booked. Return: AB12CD.",
        ),
    ],
)
def test_a_trip_whose_steps_ended_otherwise_is_told(found: JsonObject, told: str) -> None:
    """A step that should book but only searched has no reference."""
    name, text = tell("travel", "plan_trip", {"summary": "", "found": found})
    assert name == "plan_trip"
    assert text.endswith(told)


def test_an_intent_that_is_named_like_a_template_does_not_use_it() -> None:
    """The template `ask` asks for a slot; the tutorial's domain has an intent “Ask”."""
    domain, templates, _ = made("travel")
    context = a_world("travel")
    known = domain.flows[Dact("list_bookings")]

    class Asked(known):
        spec = replace(known.spec, dact=Dact("look_around"), intent="Ask")

    assert render_completed(context, Asked(context.now), templates)[0] == "read"


def test_a_table_is_told_without_hidden_columns_and_empty_values() -> None:
    context = a_world("travel")
    flow: BaseFlow = context.world.domain.flows[Dact("search_flights")](context.now)
    rows = [
        {"flight_id": "f1", "airline": None, "price": 90},
        {"flight_id": "f2", "airline": "Sky", "price": 95},
    ]
    frame = Frame("frame_1", flow.flow_id, rows, "table", source=["flight_search"])
    context.changes.frames[flow.flow_id] = frame
    assert context_of(context, flow)["rows"]() == ["90", "Sky, 95"]


def test_a_value_is_escaped_once_and_worked_out_when_it_is_used() -> None:
    domain = make_setting().context.world.domain
    own = {
        "greet": "{% macro say(x) %}{{ x }}!{% endmacro %}{% set part %}<{{ said }}>{% endset %}"
        "{{ say(said) }} {{ part }}",
        "list": "{% include 'greet' %}",
    }
    templates = Templates(replace(domain, templates=own), Registry({}), load_base_templates())
    told = r"a\*b! <a\*b>"
    assert templates.render("greet", said=partial(str, "a*b"), unused=partial(int, "none")) == told
    assert templates.render("list", said=partial(str, "a*b")) == told


def test_domains_with_the_same_template_tell_their_own_names() -> None:
    """A template that was translated once for all domains contains no domain's names."""
    travel, _, registry = made("travel")
    own = replace(travel, templates={"place": '{{ "OSL" | name("airport") }}'})

    told = [Templates(own, one, load_base_templates()).render("place") for one in (registry, Registry({}))]

    assert told == ["Oslo (OSL)", "OSL"]


def test_what_has_changed_since_is_told_with_a_reason_or_without() -> None:
    """PL-7: a step needs a different value, or is no longer needed."""
    cabin = {"name": "cabin", "old": "economy", "new": "business"}
    given = {"done": ["booked your flight"], "unknown": [], "later": True, "options": ["Leave it as it is"]}
    templates = Templates(make_setting().context.world.domain, Registry({}), load_base_templates())
    told = templates.render("confirm_correction", changes=[cabin, {"why": "no hotel is wanted"}], **given)
    assert "call for business instead of economy as the cabin, but now no hotel is wanted." in told
