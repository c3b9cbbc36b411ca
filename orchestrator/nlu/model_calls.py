"""What NLU asks models, each in one structured call through the Prompt Engineer (NL-2, NL-5, PX-4).

Makes the prompts' data and reads the answers, which still need `validate`; whether a model is asked is
decided elsewhere. Every call raises what the Prompt Engineer raises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

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
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.models.calling import CallContext
from orchestrator.nlu.nlu_context import NluContext, OpenQuestion, values_of
from orchestrator.nlu.protocol import Asker
from orchestrator.nlu.text import clean, tokenize
from orchestrator.nlu.training.examples import PLACEHOLDER
from orchestrator.types import Dact, Json, JsonObject, is_list, is_object

THINK = "nlu_think"
CONTEMPLATE = "nlu_contemplate"
SLOT_FILL = "slot_fill"
_EXAMPLES = 2
_MESSAGES = 7

SCORED_FLOWS: JsonObject = {
    "type": "array",
    "maxItems": 10,
    "items": {
        "type": "object",
        "properties": {"dact": {"type": "string"}, "score": {"type": "number"}},
        "required": ["dact", "score"],
    },
}
"""How a model names flows, likeliest first."""

UNDERSTANDING: JsonObject = {
    "type": "object",
    "properties": {
        "kind": {
            "type": "string",
            "enum": [kind.value for kind in MessageKind if kind is not MessageKind.PLAN_CHANGE],
        },
        "intent": {"type": ["string", "null"]},
        "flows": SCORED_FLOWS,
        "slots": {"type": "object"},
        "target": {"type": ["string", "null"]},
        "digression": {"type": ["string", "null"], "enum": [*(kind.value for kind in Digression), None]},
    },
    "required": ["kind", "flows", "slots"],
}


def _describe(text: str, flows: Sequence[FlowSpec], assistant: str, context: NluContext) -> JsonObject:
    """Describe what every question about a message begins with."""
    return {
        "assistant": assistant,
        "today": _write_day(context),
        "flows": _describe_flows(flows),
        "utterance": text,
        "history": _write_history(context),
    }


async def ask_understanding(
    asker: Asker,
    text: str,
    flows: Sequence[FlowSpec],
    assistant: str,
    context: NluContext,
    call: CallContext,
    remembered: Sequence[str] = (),
) -> Understanding:
    """Ask what a message means. `remembered`: of the user, what it may be about."""
    variables: JsonObject = {
        **_describe(text, flows, assistant, context),
        "stack": [
            {"dact": flow.spec.dact, "state": str(flow.status), "slots": values_of(flow)}
            for flow in context.tasks
        ],
        "question": _describe_question(context.question),
        "remembered": list(remembered),
        "shown": [] if context.shown is None else context.shown.rows,
        "plan": []
        if context.plan is None
        else [{"step": step.label, "state": str(step.status)} for step in context.plan.steps],
    }
    answer = await asker.structured(THINK, variables, UNDERSTANDING, call)
    digression = answer.get("digression")
    return Understanding(
        kind=MessageKind(answer["kind"]),
        source=Source.SYSTEM2,
        text=text,
        intent=answer.get("intent"),
        flows=_read_scores(answer),
        slots=_read_slots(answer),
        target=_clean(answer.get("target")),
        digression=Digression(digression) if digression else None,
    )


ANOTHER_FLOW: JsonObject = {
    "type": "object",
    "properties": {
        "flows": SCORED_FLOWS,
        "slots": {"type": "object"},
        "reason": {"type": "string"},
    },
    "required": ["flows", "slots"],
}


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
    """Ask which of some flows serves a request that failed, and for that flow's values."""
    variables: JsonObject = {
        **_describe(text, flows, assistant, context),
        "failed": failed,
        "evidence": evidence,
    }
    answer = await asker.structured(CONTEMPLATE, variables, ANOTHER_FLOW, call)
    return _read_scores(answer), _read_slots(answer)


VALUES: JsonObject = {
    "type": "object",
    "properties": {"slots": {"type": "object"}},
    "required": ["slots"],
}


async def ask_values(
    asker: Asker,
    text: str,
    flow: BaseFlow,
    slots: Sequence[SlotSpec],
    context: NluContext,
    call: CallContext,
    notes: Sequence[str],
) -> dict[str, Mention]:
    """Ask for the values of some slots of a flow in progress. `notes`: what is remembered of the user."""
    variables: dict[str, Json] = {
        "today": _write_day(context),
        "task": f"{flow.title}: {flow.spec.description}",
        "slots": [_describe_slot(slot) for slot in slots],
        "utterance": text,
        "history": _write_history(context),
        "known": values_of(flow),
        "notes": list(notes),
    }
    found = _read_slots(await asker.structured(SLOT_FILL, variables, VALUES, call))
    return {slot.name: found[slot.name] for slot in slots if slot.name in found}


def _describe_question(question: OpenQuestion) -> JsonObject | None:
    """What was asked, of which slot, what may be answered, and whether a yes is awaited."""
    if not question.is_open:
        return None
    return {
        "words": question.words,
        "slot": question.slot,
        "options": [option.label for option in question.options] or list(question.candidates),
        "awaits_yes": question.confirming,
    }


def _describe_flows(flows: Sequence[FlowSpec]) -> list[JsonObject]:
    return [
        {
            "dact": flow.dact,
            "intent": flow.intent,
            "description": flow.description,
            "slots": [_describe_slot(slot) for slot in flow.slots.values()],
            "examples": list(_telling_examples(flow.dact, flow.description, tuple(flow.examples))),
        }
        for flow in flows
    ]


@lru_cache(maxsize=1000)
def _telling_examples(dact: Dact, description: str, examples: tuple[str, ...]) -> tuple[str, ...]:
    """Pick the first examples that say something which neither the flow's description nor one before them says."""
    said = {*tokenize(f"{dact.replace('_', ' ')} {description}".lower()).words, *STOP_WORDS}
    telling: list[str] = []
    for example in examples:
        words = set(tokenize(PLACEHOLDER.sub(" ", example)).words) - said
        if words and len(telling) < _EXAMPLES:
            telling.append(example)
            said |= words
    return tuple(telling)


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
    """Write the summary of what was said before and the last messages, oldest first, as data."""
    return [{"role": one.role, "text": one.text} for one in context.history.with_summary(_MESSAGES)]


def _read_scores(answer: JsonObject) -> tuple[FlowScore, ...]:
    return tuple(FlowScore(Dact(_name(flow["dact"])), float(flow["score"])) for flow in answer["flows"])


def _read_slots(answer: JsonObject) -> dict[str, Mention]:
    return {
        _name(name): Mention(value, value if isinstance(value, str) else "")
        for name, value in _clean(answer["slots"]).items()
        if value is not None
    }


def _name(written: str) -> str:
    """Write the name of a flow or slot as it is declared: models write "Book Flight" too."""
    return re.sub(r"[\s-]+", "_", written.strip()).lower()


def _clean(value: Json) -> Json:
    """Take control and invisible characters out of what a model wrote, as out of what users write."""
    if isinstance(value, str):
        return clean(value)
    if is_list(value):
        return [_clean(entry) for entry in value]
    if is_object(value):
        return {clean(name): _clean(entry) for name, entry in value.items()}
    return value
