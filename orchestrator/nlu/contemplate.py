"""Re-routing after a failure: the search is narrowed, never repeated (NL-5).

The flow that failed is excluded; its fallback and edge flows come first, then its intent's. What
the ambiguity and the failure are known by is the evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.models.calling import CallContext
from orchestrator.nlu.nlu_context import Situation
from orchestrator.nlu.readers.system1 import System1
from orchestrator.nlu.readers.system2 import (
    SCORED_FLOWS,
    Asker,
    describe_flows,
    read_scores,
    read_slots,
    show_history,
)
from orchestrator.types import Dact, Json, JsonObject

CONTEMPLATE = "nlu_contemplate"
_FALLBACK_BONUS = 0.45
_EDGE_BONUS = 0.3
_INTENT_BONUS = 0.1
_PLAN_BONUS = 0.05

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "flows": SCORED_FLOWS,
        "slots": {"type": "object"},
        "reason": {"type": "string"},
    },
    "required": ["flows", "slots"],
}


def narrow(
    failed: FlowSpec | None, flows: Mapping[Dact, FlowSpec], excluded: Collection[str]
) -> list[FlowSpec]:
    """The flows that are left, likelier ones first."""
    left = [flow for flow in flows.values() if flow.dact not in excluded]
    return sorted(left, key=lambda flow: (-nearness(flow, failed), flow.dact))


def nearness(flow: FlowSpec, failed: FlowSpec | None) -> float:
    """How near a flow is to the one that failed, as an addition to its score."""
    if failed is None:
        return 0.0
    near = _FALLBACK_BONUS if failed.fallback == flow.dact else 0.0
    near += _EDGE_BONUS if flow.dact in failed.edge_flows else 0.0
    near += _INTENT_BONUS if flow.intent == failed.intent else 0.0
    return near + (_PLAN_BONUS if flow.family is Family.PLAN else 0.0)


def reroute(
    text: str,
    system1: System1,
    situation: Situation,
    failed: FlowSpec | None,
    excluded: Collection[str],
    evidence: JsonObject,
) -> Understanding:
    """Choose without a model: the classifier's scores of the flows that are left, with their nearness.

    A flow that only likelihood names has to be likely; a declared fallback is taken as it is. Slot
    names of the evidence speak for flows that have them.
    """
    opinion = system1.opinion(text, situation)
    left = narrow(failed, system1.flows, excluded)
    scored = sorted(
        ((_score(flow, failed, opinion.get(flow.dact, 0.0), evidence), flow) for flow in left),
        key=lambda item: (-item[0], item[1].dact),
    )
    flows = tuple(FlowScore(flow.dact, round(min(1.0, score), 4)) for score, flow in scored[:3])
    if not flows or scored[0][0] < system1.likely:
        return Understanding(MessageKind.UNKNOWN, Source.SYSTEM1, text, flows=flows)
    best = scored[0][1]
    slots = {**_carry(situation, best), **system1.slots_for(text, best, situation)}
    return Understanding(MessageKind.TASK, Source.SYSTEM1, text, best.intent, flows, slots)


def _score(flow: FlowSpec, failed: FlowSpec | None, likelihood: float, evidence: JsonObject) -> float:
    slots: Json = evidence.get("slots")
    named = [str(name) for name in cast("Iterable[Json]", slots)] if type(slots) in {list, dict} else []
    share = sum(1 for name in named if name in flow.slots) / max(1, len(named))
    return likelihood + nearness(flow, failed) + 0.1 * share


def _carry(situation: Situation, flow: FlowSpec) -> dict[str, Mention]:
    """The values of the failed flow whose slots the new one has as well."""
    return {name: Mention(value) for name, value in situation.values.items() if name in flow.slots}


async def ask_model(
    asker: Asker,
    text: str,
    flows: Sequence[FlowSpec],
    assistant: str,
    state: DialogueState,
    situation: Situation,
    failed: JsonObject,
    evidence: JsonObject,
    call: CallContext,
) -> Understanding:
    """Ask a model which of the flows that are left serves. Raises what the Prompt Engineer raises."""
    variables: dict[str, Json] = {
        "assistant": assistant,
        "today": situation.today.strftime("%A, %Y-%m-%d"),
        "flows": describe_flows(flows),
        "utterance": text,
        "history": show_history(state),
        "failed": failed,
        "evidence": evidence,
    }
    answer = await asker.structured(CONTEMPLATE, variables, SCHEMA, call)
    known = {flow.dact: flow for flow in flows}
    scores = tuple(score for score in read_scores(answer) if score.dact in known)
    kind = MessageKind.TASK if scores else MessageKind.UNKNOWN
    understanding = Understanding(kind, Source.SYSTEM2, text, flows=scores, slots=read_slots(answer))
    if not scores:
        return replace(understanding, slots={})
    best = known[scores[0].dact]
    return replace(
        understanding, intent=best.intent, slots={**_carry(situation, best), **understanding.slots}
    )
