"""Several missing slots asked for at once, where a flow's option `form` says so (RS-5).

The answer comes back as the action `fill_form`; reading it is NLU's business.
"""

from __future__ import annotations

from orchestrator.dialogue.ambiguity import Level, Question
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.res.words import name_slot_of
from orchestrator.types import JsonObject

FEWEST_FIELDS = 2
_INPUTS = {"date": "date", "time": "time", "level": "number", "number": "number", "integer": "number"}
"""Types of slots that clients have inputs for; others are text, or a choice when they list values."""


def make_form(flow: BaseFlow | None, question: Question) -> JsonObject | None:
    """The form for what a flow still needs; None when its question is better asked alone."""
    if flow is None or question.level is not Level.SPECIFIC or not flow.spec.options.get("form"):
        return None
    missing = flow.missing()
    if len(missing) < FEWEST_FIELDS or question.options:
        return None
    return {
        "kind": "form",
        "level": question.level.value,
        "flow_id": flow.flow_id,
        "slot": question.slot,
        "fields": [_make_field(flow, slot) for slot in missing],
        "submit": {"label": "Send", "name": "fill_form", "payload": {"flow_id": flow.flow_id, "values": {}}},
    }


def _make_field(flow: BaseFlow, slot: SlotSpec) -> JsonObject:
    return {
        "name": slot.name,
        "label": name_slot_of(flow, slot.name),
        "prompt": slot.prompt,
        "type": "choice" if slot.values else _INPUTS.get(slot.type, "text"),
        "values": list(slot.values),
        "minimum": slot.minimum,
        "maximum": slot.maximum,
        "required": True,
    }
