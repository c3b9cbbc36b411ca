"""JSON Schemas for models' answers to planning prompts, generated from the domain's flows (PL-1).

`DECOMPOSITION` and the other constants at the end are looser schemas that validate the answers, because
endpoints without schema enforcement may omit keys and return slots as an object.
"""

from collections.abc import Iterable, Sequence

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.models.schemas import array, bounded_text, closed, list_of, loose, one_of
from orchestrator.nlu.answer_schemas import SLOTS, input_names, slot_pairs, slot_specs
from orchestrator.types import JsonObject

ALTERNATIVE_KINDS = ("none", "order", "trade_offs", "objective")
"""Reasons for a model to compare decompositions (PL-5), or `none` if its own decomposition is obvious."""
DECISIONS = ("keep", "change", "stop")
MOST_FAULTS = 3
MOST_MISSING = 5
LONGEST_PURPOSE = 120
LONGEST_REASON = 300
LONGEST_SUMMARY = 800


def decomposition_schema(flows: Sequence[FlowSpec], done: Iterable[str], room: int) -> JsonObject:
    """Return the schema for a decomposition. `done`: names of earlier steps. `room`: maximum number of steps."""
    return closed(steps=_steps(flows, done, room), alternatives=one_of(ALTERNATIVE_KINDS))


def several_schema(flows: Sequence[FlowSpec], done: Iterable[str], room: int, wanted: int) -> JsonObject:
    """Return the schema for up to `wanted` alternative decompositions."""
    return closed(plans=list_of(closed(steps=_steps(flows, done, room)), wanted))


def judgements_schema(count: int) -> JsonObject:
    faults = list_of(bounded_text(LONGEST_REASON), MOST_FAULTS)
    return closed(judgements=list_of(closed(score={"type": "number"}, faults=faults), count))


def replanning_schema(flows: Sequence[FlowSpec], done: Iterable[str], room: int) -> JsonObject:
    return closed(
        decision=one_of(DECISIONS),
        steps=_steps(flows, done, room),
        reason=bounded_text(LONGEST_REASON),
    )


COMPLETION_SCHEMA = closed(
    complete={"type": "boolean"},
    missing=list_of(bounded_text(LONGEST_PURPOSE), MOST_MISSING),
    summary=bounded_text(LONGEST_SUMMARY),
)


def _steps(flows: Sequence[FlowSpec], done: Iterable[str], room: int) -> JsonObject:
    dacts = [flow.dact for flow in flows]
    step = closed(
        dact=one_of(dacts),
        slots=slot_pairs(slot_specs(flows), input_names(flows)),
        needs=list_of(one_of(dict.fromkeys([*dacts, *done])), room),
        purpose=bounded_text(LONGEST_PURPOSE),
    )
    return list_of(step, room)


_TEXT: JsonObject = {"type": "string"}
_STEPS = array(loose(["dact"], dact=_TEXT, slots=SLOTS, needs=array(_TEXT), purpose=_TEXT))
DECOMPOSITION = loose(["steps"], steps=_STEPS, alternatives={"enum": list(ALTERNATIVE_KINDS)})
SEVERAL = loose(["plans"], plans=array(DECOMPOSITION))
JUDGEMENTS = loose(
    ["judgements"], judgements=array(loose(["score"], score={"type": "number"}, faults=array(_TEXT)))
)
REPLANNING = loose(["decision"], decision={"enum": list(DECISIONS)}, steps=_STEPS, reason=_TEXT)
COMPLETION = loose(["complete"], complete={"type": "boolean"}, missing=array(_TEXT), summary=_TEXT)
