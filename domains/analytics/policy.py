"""What all policies of the domain share: names that people made, frames with pages, and later questions.

The catalogue's names are found by NLU. Those that appear while people talk are known to the session by
the outputs of its completed flows, and looked for in the message here.
"""

from __future__ import annotations

import re
from typing import Any

from orchestrator.dialogue.ambiguity import Level
from orchestrator.dialogue.frame import Frame
from orchestrator.dialogue.slots import SlotSource
from orchestrator.pex.ending import Ending, NeedsInput
from orchestrator.pex.execution import Execution
from orchestrator.pex.policy import BasePolicy
from orchestrator.pex.results import make_frame

_AFTER: dict[str, tuple[str, ...]] = {
    "by": ("by", "per", "each", "over", "against", "every"),
    "across": ("across", "and"),
    "order": ("by",),
    "key": ("on",),
    "other_table": ("with", "and", "to"),
    "other_column": ("with", "and"),
}
"""Words before a name that say which slot it is for."""


class TablePolicy(BasePolicy):
    """Fills slots with the session's own names, and hands rows over page by page."""

    async def review(self, run: Execution) -> Ending | None:
        fill_own_names(run)
        return await super().review(run)

    def frame(self, run: Execution) -> Frame:
        frame, data = make_frame(run), run.data
        frame.code = data.get("code")
        if "chart" in data:
            frame.display_type, frame.data, frame.chart_type = "chart", data["chart"], data["chart_kind"]
            frame.display_name = data["title"]
        elif "rows" in data:
            frame.display_type, frame.data = "table", data["rows"]
            frame.rows, frame.table_id, frame.warning = data["row_count"], data.get("table_id"), None
        else:
            frame.data = {name: value for name, value in data.items() if name != "names"}
        return frame


def ask(run: Execution, slot: str) -> NeedsInput:
    """Make a slot that became necessary the open question."""
    run.world.state.ambiguity.declare(
        Level.SPECIFIC, flow_id=run.flow.flow_id, slot=slot, turn_id=run.world.turn_id
    )
    return NeedsInput()


def own_names(run: Execution) -> dict[str, list[str]]:
    """The session's own tables and columns, as the latest completed flow knew them."""
    for done in reversed(run.world.state.completed):
        names = done.outputs.get("names")
        if isinstance(names, dict):
            return names
    return {}


def fill_own_names(run: Execution) -> None:
    """Find own names in the message and give each to the slot that its place and entity suggest."""
    text = run.world.text.casefold()
    for entity, names in own_names(run).items():
        for name in sorted(names, key=len, reverse=True):
            found = re.search(_spoken(name), text)
            slot = _slot_for(run, entity, text[: found.start()]) if found else None
            if found and slot is not None:
                value: Any = [name] if run.flow.spec.slots[slot].type == "group" else name
                run.flow.fill_slots_by_label({slot: value}, turn_id=run.world.turn_id)
                text = text[: found.start()] + " " * len(found.group()) + text[found.end() :]


def _spoken(name: str) -> str:
    """``cars_sample`` may be said ``cars sample``."""
    return r"\b" + r"[ _]".join(re.escape(part) for part in name.casefold().split("_")) + r"\b"


def _slot_for(run: Execution, entity: str, before: str) -> str | None:
    """The slot a name is for: by the word before it, else the first that nobody filled in this turn."""
    free = [
        name for name, slot in run.flow.spec.slots.items() if slot.entity == entity and not _said_now(run, name)
    ]
    word = before.split()[-1] if before.split() else ""
    told = next((name for name in free if word in _AFTER.get(name, ())), None)
    if told is not None:
        return told
    plain = [name for name in free if name not in _AFTER or run.flow.spec.slots[name].priority == "required"]
    return plain[0] if plain else None


def _said_now(run: Execution, name: str) -> bool:
    """Whether a slot was given in this turn by something other than a part of an own name."""
    held = run.flow.slots.get(name)
    return (
        held is not None
        and held.source is SlotSource.USER
        and (held.turn_id == run.world.turn_id or run.flow.turn_ids[-1:] != [run.world.turn_id])
    )
