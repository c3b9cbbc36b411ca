"""CO-2: schemas that limit models' answers, with names from closed sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator

from internal_flows.session.summarize_session import JUDGED_BY, summary_schema
from orchestrator.adapters.domains.folder import load_domain
from orchestrator.nlu.answer_schemas import another_flow_schema, understanding_schema
from orchestrator.nlu.validate import requestable_flows
from orchestrator.plans.answer_schemas import (
    COMPLETION,
    COMPLETION_SCHEMA,
    DECOMPOSITION,
    JUDGEMENTS,
    REPLANNING,
    SEVERAL,
    decomposition_schema,
    judgements_schema,
    replanning_schema,
    several_schema,
)
from orchestrator.plans.drafts import catalogue
from tests.cases import for_each

DOMAIN = load_domain("travel").domain
REQUESTABLE = requestable_flows({dact: flow.spec for dact, flow in DOMAIN.flows.items()})
STEPS = [flow.spec for flow in catalogue(DOMAIN.flows).values()]
DONE = ("search_flights_2",)
SCHEMAS = {
    "nlu_think": understanding_schema(REQUESTABLE),
    "nlu_contemplate": another_flow_schema(REQUESTABLE),
    "plan_decompose": decomposition_schema(STEPS, DONE, 6),
    "plan_alternatives": several_schema(STEPS, DONE, 6, 2),
    "plan_score": judgements_schema(3),
    "plan_replan": replanning_schema(STEPS, DONE, 6),
    "plan_complete": COMPLETION_SCHEMA,
    "memory_summarize": summary_schema(800),
}


def parts(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        yield schema
        for inner in schema.values():
            yield from parts(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from parts(inner)


@for_each("prompt", SCHEMAS)
def test_every_text_and_list_of_an_answer_is_bounded(prompt: str) -> None:
    """NL-2: endpoints that enforce the schema cannot generate endlessly."""
    for part in parts(SCHEMAS[prompt]):
        kinds = part.get("type", ()) if isinstance(part.get("type"), list) else [part.get("type")]
        if "string" in kinds:
            assert "enum" in part or part["maxLength"] <= 800, part
        if "array" in kinds:
            assert part["maxItems"] <= 6, part
        if "object" in kinds:
            assert part["additionalProperties"] is False
            assert sorted(part["required"]) == sorted(part["properties"])


def test_steps_name_flows_slots_and_earlier_steps_of_the_domain() -> None:
    """PL-1"""
    step = SCHEMAS["plan_decompose"]["properties"]["steps"]["items"]["properties"]

    assert "compare_fares" in step["dact"]["enum"], "what only plans do is a step"
    assert "chat" not in step["dact"]["enum"]
    assert {*step["dact"]["enum"], *DONE} == {*step["needs"]["items"]["enum"]}
    assert {"origin", "date"} <= {*step["slots"]["items"]["properties"]["name"]["enum"]}


STEP = {
    "dact": "search_flights",
    "slots": [{"name": "origin", "value": "Oslo"}],
    "needs": [],
    "purpose": "look",
}
LOOSE = STEP | {"slots": {"origin": "Oslo"}}
ANSWERS: dict[str, tuple[Any, Any, Any]] = {
    "plan_decompose": (DECOMPOSITION, {"steps": [STEP], "alternatives": "none"}, {"steps": [LOOSE]}),
    "plan_alternatives": (SEVERAL, {"plans": [{"steps": [STEP]}]}, {"plans": [{"steps": [LOOSE]}]}),
    "plan_score": (
        JUDGEMENTS,
        {"judgements": [{"score": 0.5, "faults": []}]},
        {"judgements": [{"score": 1}]},
    ),
    "plan_replan": (REPLANNING, {"decision": "keep", "steps": [], "reason": ""}, {"decision": "stop"}),
    "plan_complete": (COMPLETION, {"complete": True, "missing": [], "summary": ""}, {"complete": False}),
    "memory_summarize": (JUDGED_BY, {"summary": "So.", "findings": []}, {"summary": "So."}),
}


@for_each("prompt", ANSWERS)
def test_an_answer_is_judged_less_strictly_than_it_is_asked_for(prompt: str) -> None:
    judged_by, bounded, loose = ANSWERS[prompt]
    judge: Any = Draft202012Validator(judged_by)
    asked: Any = Draft202012Validator(SCHEMAS[prompt])

    assert asked.is_valid(bounded)
    assert judge.is_valid(bounded)
    assert judge.is_valid(loose)
    assert not asked.is_valid(loose)
