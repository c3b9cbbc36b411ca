"""NLU's structured model calls through the Prompt Engineer (NL-2, NL-5, PX-4).

`nlu.validate` checks the answers later. Every call can raise the Prompt Engineer's errors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import (
    Digression,
    FlowScore,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.models.calling import CallContext
from orchestrator.nlu.answer_schemas import (
    ANOTHER_FLOW,
    UNDERSTANDING,
    VALUES,
    another_flow_schema,
    read_pairs,
    slot_specs,
    understanding_schema,
    values_schema,
)
from orchestrator.nlu.nlu_context import NluContext, OpenQuestion, values_of
from orchestrator.nlu.protocol import Asker
from orchestrator.nlu.text import clean
from orchestrator.types import Dact, Json, JsonObject, is_list, is_object

THINK = "nlu_think"
CONTEMPLATE = "nlu_contemplate"
SLOT_FILL = "slot_fill"
_MESSAGES = 7
_MOST_LIKELY = 3
"""Maximum number of flows described in full, in addition to the current task's flow."""
_LEAST_SHARE = 0.02
_FAR_LESS = 4
"""Flows that are more than this many times less probable than the best flow are not described in full."""
_SAID_BY_NAME = frozenset({"base", "category", "source", "target", "exact"})
"""Slot types that need no description beyond the name."""


def choose_likely(
    flows: Sequence[FlowSpec], rated: Mapping[Dact, float], context: NluContext
) -> tuple[FlowSpec, ...]:
    """Return the flows to describe in full: the current task's flow and the most likely flows.

    `rated`: flow probabilities by flow name.
    """
    known = {flow.dact: flow for flow in flows}
    order = sorted(known, key=lambda dact: -rated.get(dact, 0.0))[:_MOST_LIKELY]
    least = max(_LEAST_SHARE, rated.get(order[0], 0.0) / _FAR_LESS) if order else 0.0
    at_hand = [flow.spec.dact for flow in reversed(context.tasks)]
    chosen = dict.fromkeys((*at_hand[:1], *(dact for dact in order if rated.get(dact, 0.0) >= least)))
    return tuple(known[dact] for dact in chosen if dact in known)


async def ask_understanding(
    asker: Asker,
    text: str,
    flows: Sequence[FlowSpec],
    assistant: str,
    context: NluContext,
    call: CallContext,
    *,
    likely: Sequence[FlowSpec] = (),
    remembered: Sequence[str] = (),
) -> Understanding:
    """Ask a model to interpret a message.

    `flows`: flows that the message can request. `likely`: flows described in full. `remembered`: the user's
    memories that may be relevant.
    """
    variables: JsonObject = {
        "assistant": assistant,
        "flows": [{"dact": flow.dact, "description": flow.description} for flow in flows],
        "history": _write_history(context),
        "remembered": list(remembered),
        "plan": []
        if context.plan is None
        else [{"step": step.label, "state": str(step.status)} for step in context.plan.steps],
        "stack": [
            {"dact": flow.spec.dact, "state": str(flow.status), "slots": values_of(flow)}
            for flow in context.tasks
        ],
        "shown": [] if context.shown is None else context.shown.rows,
        "question": _describe_question(context.question),
        "likely": _describe_likely(likely),
        "today": _write_day(context),
        "utterance": text,
    }
    schema = understanding_schema(flows)
    answer = await asker.structured(THINK, variables, schema, call, judged_by=UNDERSTANDING)
    kind, digression = MessageKind(answer["kind"]), answer.get("digression")
    scores, said = _read_scores(answer), text.casefold()
    left = [_clean(word) for word in answer.get("not_understood") or ()]
    return Understanding(
        kind=kind,
        source=Source.SYSTEM2,
        text=text,
        intent=answer.get("intent"),
        flows=scores,
        slots=_read_slots(answer, _specs_of(flows, scores, context)),
        target=_clean(answer.get("target")) or None,
        digression=Digression(digression) if digression and kind is MessageKind.DIGRESSION else None,
        not_understood=tuple(word for word in left if word.casefold() in said),  # only what the user said
    )


async def ask_another_flow(
    asker: Asker,
    text: str,
    flows: Sequence[FlowSpec],
    assistant: str,
    context: NluContext,
    failed: JsonObject,
    evidence: JsonObject,
    call: CallContext,
) -> tuple[tuple[FlowScore, ...], dict[str, Mention]]:
    """Ask a model to choose another flow for a failed request. Return scored flows and slot values.

    `failed`: the failed flow and its slot values. `evidence`: details of the failure.
    """
    variables: JsonObject = {
        "assistant": assistant,
        "flows": [
            {
                "dact": flow.dact,
                "intent": flow.intent,
                "description": flow.description,
                "slots": [_describe_slot(slot) for slot in flow.slots.values()],
            }
            for flow in flows
        ],
        "history": _write_history(context),
        "failed": failed,
        "evidence": evidence,
        "today": _write_day(context),
        "utterance": text,
    }
    schema = another_flow_schema(flows)
    answer = await asker.structured(CONTEMPLATE, variables, schema, call, judged_by=ANOTHER_FLOW)
    scores = _read_scores(answer)
    return scores, _read_slots(answer, _specs_of(flows, scores, context))


async def ask_values(
    asker: Asker,
    text: str,
    flow: BaseFlow,
    slots: Sequence[SlotSpec],
    context: NluContext,
    call: CallContext,
    notes: Sequence[str],
) -> dict[str, Mention]:
    """Ask a model for slot values for a flow in progress. `notes`: the user's memories, and document passages."""
    variables: dict[str, Json] = {
        "task": f"{flow.title}: {flow.spec.description}",
        "slots": [_describe_slot(slot) for slot in slots],
        "history": _write_history(context),
        "known": values_of(flow),
        "notes": list(notes),
        "today": _write_day(context),
        "utterance": text,
    }
    answer = await asker.structured(SLOT_FILL, variables, values_schema(slots), call, judged_by=VALUES)
    found = _read_slots(answer, {slot.name: slot for slot in slots})
    return {slot.name: found[slot.name] for slot in slots if slot.name in found}


def _specs_of(
    flows: Sequence[FlowSpec], scores: Sequence[FlowScore], context: NluContext
) -> dict[str, SlotSpec]:
    """Return slots by name. For duplicate names, prefer the best flow's slots, then the active flow's slots."""
    best = max(scores, key=lambda one: one.score).dact if scores else None
    order = (*flows, *(context.active, *(flow for flow in flows if flow.dact == best)))
    return {slot.name: slot for flow in order if flow is not None for slot in flow.slots.values()}


def _describe_question(question: OpenQuestion) -> JsonObject | None:
    if not question.is_open:
        return None
    return {
        "words": question.words,
        "slot": question.slot,
        "options": [str(option.label) for option in question.options],
        "awaits_yes": question.confirming,
    }


def _describe_likely(flows: Sequence[FlowSpec]) -> JsonObject:
    """Describe flows with the names of their slots. Describe each slot only once."""
    slots: JsonObject = {}
    described: JsonObject = {}
    for flow in flows:
        described[flow.dact] = list(slot_specs((flow,)))
        slots |= {name: told for name in described[flow.dact] if (told := _tell_slot(flow.slots[name]))}
    return {"flows": described, "slots": slots} if flows else {}


def _tell_slot(slot: SlotSpec) -> str:
    """Describe a slot in a few words, or return an empty string if the name is enough."""
    described = _describe_slot(slot)
    kind = slot.type if slot.type not in _SAID_BY_NAME else ""
    words = str(described.get("description", kind))
    options = " | ".join(described.get("options", ()))
    return f"{words}: {options}" if words and options else words or options


def _describe_slot(slot: SlotSpec) -> JsonObject:
    body: JsonObject = {"name": slot.name, "type": slot.type}
    description = slot.description or slot.prompt
    if description.lower().removeprefix("the ") not in {"", slot.name.replace("_", " ")}:
        body["description"] = description
    if slot.values:
        body["options"] = list(slot.values)
    return body


def _write_day(context: NluContext) -> str:
    return context.today.strftime("%A, %Y-%m-%d")


def _write_history(context: NluContext) -> list[JsonObject]:
    return [{"role": one.role, "text": one.text} for one in context.history.with_summary(_MESSAGES)]


def _read_scores(answer: JsonObject) -> tuple[FlowScore, ...]:
    return tuple(FlowScore(Dact(_name(flow["dact"])), float(flow["score"])) for flow in answer["flows"])


def _read_slots(answer: JsonObject, specs: dict[str, SlotSpec]) -> dict[str, Mention]:
    return {
        _name(name): Mention(value, value if isinstance(value, str) else "")
        for name, value in ((name, _clean(value)) for name, value in read_pairs(answer["slots"], specs))
        if value is not None
    }


def _name(written: str) -> str:
    """Normalize a model's flow or slot name, such as “Book Flight”, to snake case."""
    return re.sub(r"[\s-]+", "_", written.strip()).lower()


def _clean(value: Json) -> Json:
    if isinstance(value, str):
        return clean(value)
    if is_list(value):
        return [_clean(entry) for entry in value]
    if is_object(value):
        return {clean(name): _clean(entry) for name, entry in value.items()}
    return value
