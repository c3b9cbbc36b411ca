"""Find another flow for a request after its flow has failed (NL-5).

Flows similar to the failed flow get a bonus: the failed flow's fallback and edge flows a large bonus, and flows with
the same intent or shared acts a smaller one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.domain.acts import count_shared
from orchestrator.models.calling import CallContext
from orchestrator.nlu.model_calls import ask_another_flow
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Asker
from orchestrator.nlu.system1 import System1
from orchestrator.types import Dact, Json, JsonObject, is_list, is_object

_FALLBACK_BONUS = 0.45
_EDGE_BONUS = 0.3
_INTENT_BONUS = 0.1
_ACT_BONUS = 0.05
"""Bonus for each act that two flows share."""
_PLAN_BONUS = 0.05


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request to reroute after a failure.

    `flow`: the failed flow. `evidence`: details of the failure, such as its category, message, ambiguity
    metadata and slots.
    """

    text: str
    flow: FlowSpec
    evidence: JsonObject


def narrow(request: FailedRequest, flows: Mapping[Dact, FlowSpec]) -> list[FlowSpec]:
    """Return the flows except the failed flow, those with the largest bonus first."""
    left = [flow for flow in flows.values() if flow.dact != request.flow.dact]
    return sorted(left, key=lambda flow: (-nearness(flow, request.flow), flow.dact))


def nearness(flow: FlowSpec, failed: FlowSpec) -> float:
    """Return a flow's bonus as a replacement for `failed`."""
    near = _FALLBACK_BONUS if failed.fallback == flow.dact else 0.0
    near += _EDGE_BONUS if flow.dact in failed.edge_flows else 0.0
    near += _INTENT_BONUS if flow.intent == failed.intent else 0.0
    near += _ACT_BONUS * count_shared(flow.dax, failed.dax)
    return near + (_PLAN_BONUS if flow.family is Family.PLAN else 0.0)


def reroute(request: FailedRequest, system1: System1, context: NluContext) -> Understanding:
    """Choose another flow without a model, by classifier score, bonus, and the share of the evidence's slots in it.

    The result's kind is `UNKNOWN` if no flow is likely.
    """
    text, opinion = request.text, system1.opinion(request.text, context)
    scored = sorted(
        (
            (_score(flow, request, opinion.get(flow.dact, 0.0)), flow)
            for flow in narrow(request, system1.flows)
        ),
        key=lambda item: (-item[0], item[1].dact),
    )
    flows = tuple(FlowScore(flow.dact, round(min(1.0, score), 4)) for score, flow in scored[:3])
    if not flows or scored[0][0] < system1.likely:
        return Understanding(MessageKind.UNKNOWN, Source.SYSTEM1, text, flows=flows)
    best = scored[0][1]
    slots = {**_carry(context, best), **system1.slots_for(text, best, context)}
    return Understanding(MessageKind.TASK, Source.SYSTEM1, text, best.intent, flows, slots)


async def reroute_by_model(
    request: FailedRequest,
    asker: Asker,
    flows: Mapping[Dact, FlowSpec],
    assistant: str,
    context: NluContext,
    call: CallContext,
) -> Understanding:
    """Ask a model to choose among the flows except the failed flow.

    The result's kind is `UNKNOWN` if the model chooses no such flow. Raises the Prompt Engineer's errors.
    """
    left = narrow(request, flows)
    failed: JsonObject = {"dact": request.flow.dact, "slots": dict(context.values)}
    found, slots = await ask_another_flow(
        asker, request.text, left, assistant, context, failed, request.evidence, call
    )
    known = {flow.dact: flow for flow in left}
    scores = tuple(score for score in found if score.dact in known)
    if not scores:
        return Understanding(MessageKind.UNKNOWN, Source.SYSTEM2, request.text)
    best = known[scores[0].dact]
    slots = {**_carry(context, best), **slots}
    return Understanding(MessageKind.TASK, Source.SYSTEM2, request.text, best.intent, scores, slots)


def _score(flow: FlowSpec, request: FailedRequest, likelihood: float) -> float:
    slots: Json = request.evidence.get("slots")
    named = [str(name) for name in slots] if is_list(slots) or is_object(slots) else []
    share = sum(1 for name in named if name in flow.slots) / max(1, len(named))
    return likelihood + nearness(flow, request.flow) + 0.1 * share


def _carry(context: NluContext, flow: FlowSpec) -> dict[str, Mention]:
    return {name: Mention(value) for name, value in context.values.items() if name in flow.slots}
