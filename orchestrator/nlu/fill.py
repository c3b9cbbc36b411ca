"""Values for missing slots, read by a model out of what was said before (PX-4).

Finds words; whether they fit their slots is judged by `validate` and by the flow.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Mention
from orchestrator.models.calling import CallContext
from orchestrator.nlu.nlu_context import Situation, values_of
from orchestrator.nlu.readers.system2 import Asker, describe_slot, read_slots, show_history
from orchestrator.types import Json, JsonObject

SLOT_FILL = "slot_fill"

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"slots": {"type": "object"}},
    "required": ["slots"],
}


async def ask_model(
    asker: Asker,
    text: str,
    flow: BaseFlow,
    slots: Sequence[SlotSpec],
    state: DialogueState,
    situation: Situation,
    call: CallContext,
) -> dict[str, Mention]:
    """Ask a model for the values of some slots. Raises what the Prompt Engineer raises."""
    known: JsonObject = dict(values_of(flow))
    variables: dict[str, Json] = {
        "today": situation.today.strftime("%A, %Y-%m-%d"),
        "task": f"{flow.title}: {flow.spec.description}",
        "slots": [describe_slot(slot) for slot in slots],
        "utterance": text,
        "history": show_history(state),
        "known": known,
        "notes": [],
    }
    found = read_slots(await asker.structured(SLOT_FILL, variables, SCHEMA, call))
    wanted = {slot.name for slot in slots}
    return {name: mention for name, mention in found.items() if name in wanted}
