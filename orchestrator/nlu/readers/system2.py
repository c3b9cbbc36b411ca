"""System 2: understanding by a model, in one structured call through the Prompt Engineer (NL-2).

Makes the prompt's data and reads the answer; whether a model is asked is decided in `think`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrator.dialogue.json_values import is_list, is_object
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import (
    Digression,
    FlowScore,
    Mention,
    MessageKind,
    Source,
    Understanding,
)
from orchestrator.memory.context_coordinator import ContextCoordinator
from orchestrator.models.calling import CallContext
from orchestrator.nlu.nlu_context import Situation
from orchestrator.nlu.text import clean
from orchestrator.types import Dact, Json, JsonObject

THINK = "nlu_think"
_EXAMPLES_SHOWN = 3
_MESSAGES_SHOWN = 7

SCORED_FLOWS: JsonObject = {
    "type": "array",
    "maxItems": 10,
    "items": {
        "type": "object",
        "properties": {"dact": {"type": "string"}, "score": {"type": "number"}},
        "required": ["dact", "score"],
    },
}
"""How a model names flows, likeliest first; `read_scores` reads it."""

SCHEMA: JsonObject = {
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


class Asker(Protocol):
    """What System 2 needs of the Prompt Engineer."""

    @property
    def available(self) -> bool: ...

    async def structured(
        self, prompt_id: str, variables: Mapping[str, Json], schema: JsonObject, call: CallContext
    ) -> JsonObject: ...


def describe_flows(flows: Sequence[FlowSpec]) -> list[JsonObject]:
    """The flows as a prompt shows them."""
    return [
        {
            "dact": flow.dact,
            "intent": flow.intent,
            "description": flow.description,
            "slots": [describe_slot(slot) for slot in flow.slots.values()],
            "examples": list(flow.examples[:_EXAMPLES_SHOWN]),
        }
        for flow in flows
    ]


def describe_slot(slot: SlotSpec) -> JsonObject:
    """A slot as a prompt shows it."""
    body: JsonObject = {"name": slot.name, "type": slot.type}
    if slot.description or slot.prompt:
        body["description"] = slot.description or slot.prompt
    if slot.values:
        body["options"] = list(slot.values)
    return body


def show_history(state: DialogueState) -> list[JsonObject]:
    """The summary of what was said before and the last messages, oldest first, as data."""
    shown = ContextCoordinator.of(state).with_summary(_MESSAGES_SHOWN)
    return [{"role": message.role, "text": message.text} for message in shown]


def show_stack(state: DialogueState) -> list[JsonObject]:
    """The tasks in progress, the one at hand last."""
    return [
        {
            "dact": flow.spec.dact,
            "state": str(flow.standing),
            "slots": {name: held.value for name, held in flow.slots.items()},
        }
        for flow in state.stack.flows
    ]


async def ask_model(
    asker: Asker,
    text: str,
    flows: Sequence[FlowSpec],
    assistant: str,
    state: DialogueState,
    situation: Situation,
    call: CallContext,
) -> Understanding:
    """Ask a model once. Raises what the Prompt Engineer raises; the answer still needs `validate`."""
    variables: dict[str, Json] = {
        "assistant": assistant,
        "today": situation.today.strftime("%A, %Y-%m-%d"),
        "flows": describe_flows(flows),
        "utterance": text,
        "history": show_history(state),
        "stack": show_stack(state),
        "question": situation.question or (f"asked for: {situation.asked}" if situation.asked else None),
    }
    return read_answer_of_model(await asker.structured(THINK, variables, SCHEMA, call), text)


def read_answer_of_model(answer: JsonObject, text: str) -> Understanding:
    """Turn a structured answer that fits the schema into an understanding."""
    digression = answer.get("digression")
    return Understanding(
        kind=MessageKind(answer["kind"]),
        source=Source.SYSTEM2,
        text=text,
        intent=answer.get("intent"),
        flows=read_scores(answer),
        slots=read_slots(answer),
        target=clean_value(answer.get("target")),
        digression=Digression(digression) if digression else None,
    )


def read_scores(answer: JsonObject) -> tuple[FlowScore, ...]:
    return tuple(FlowScore(Dact(flow["dact"]), float(flow["score"])) for flow in answer["flows"])


def read_slots(answer: JsonObject) -> dict[str, Mention]:
    return {
        str(name): Mention(value, value if isinstance(value, str) else "")
        for name, value in clean_value(answer["slots"]).items()
        if value is not None
    }


def clean_value(value: Json) -> Json:
    """What a model wrote without control and invisible characters, as what users write is cleaned."""
    if isinstance(value, str):
        return clean(value)
    if is_list(value):
        return [clean_value(entry) for entry in value]
    if is_object(value):
        return {clean(name): clean_value(entry) for name, entry in value.items()}
    return value
