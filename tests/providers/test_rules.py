"""Rules of the strict providers: each accepts a valid request, and refuses a request that breaks it."""

from __future__ import annotations

from typing import Any

from lab.evaluation.rubric import verdicts_schema
from orchestrator.nlu.answer_schemas import values_schema
from orchestrator.pex.frames import redraw_schema
from orchestrator.pex.queries import requery_schema
from orchestrator.pex.skills.runner import REFLECT_SCHEMA
from orchestrator.types import Dact
from tests.cases import for_each
from tests.providers.broken import BROKEN, GOOD, break_it
from tests.providers.dialects import DIALECTS
from tests.providers.rules import refuse_unstrict
from tests.trained import trained
from tests.unit.models.test_answer_schemas import SCHEMAS

ASKED_FOR: dict[str, Any] = SCHEMAS | {
    "pex_reflect": REFLECT_SCHEMA,
    "pex_redraw": redraw_schema({"rows": []}),
    "pex_requery": requery_schema(),
    "eval_judge": verdicts_schema(2),
    "slot_fill": values_schema(trained("travel")[0].domain.flows[Dact("book_flight")].spec.slots.values()),
}
KEYS = {"authorization": "Bearer k", "anthropic-version": "2023-06-01"}
CASES = [(name, rule) for name, rules in BROKEN.items() for rule in rules]


@for_each("name", DIALECTS)
def test_a_good_request_is_taken(name: str) -> None:
    dialect = DIALECTS[name]()
    assert dialect.refuse(GOOD[name], KEYS) is None
    assert dialect.read(GOOD[name], f"{dialect.path}m:generateContent").tools == ["look"]


@for_each(("name", "rule"), CASES)
def test_a_request_that_breaks_a_rule_is_refused(name: str, rule: str) -> None:
    """CO-2."""
    [one] = [one for one in DIALECTS[name].rules if one.name == rule]
    assert one.judge(break_it(name, rule)) is not None
    assert one.judge(GOOD[name]) is None


@for_each("prompt", ASKED_FOR)
def test_every_answer_is_asked_for_in_the_strict_form(prompt: str) -> None:
    """CO-2: https://github.com/Agent-Field/agentfield/pull/680"""
    assert refuse_unstrict(ASKED_FOR[prompt]) is None


@for_each("name", DIALECTS)
def test_every_rule_has_a_source_and_a_request_that_breaks_it(name: str) -> None:
    rules: dict[str, Any] = {one.name: one.source for one in DIALECTS[name].rules}
    assert rules.keys() == BROKEN[name].keys()
    assert all(source.startswith("https://") for source in rules.values())
