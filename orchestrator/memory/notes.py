"""The scratchpad as PEX sees it: short notes of the session, with the labels of what they were made from.

`FlowNotes` keeps them in the working state, with the flows that wrote them; a store that workers and
Internal flows share takes its place by the same two methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.state import DialogueState
from orchestrator.types import JsonObject

NOTE = "scratchpad"
LONGEST = 500
"""Characters of one note."""
KEPT_PER_FLOW = 12


@dataclass(frozen=True, slots=True)
class Note:
    """`about`: the dact of the flow that wrote it. `labels`: of the data it was made from (PX-3)."""

    text: str
    about: str
    turn: int
    labels: tuple[str, ...] = ()

    def serialize(self) -> JsonObject:
        return {"text": self.text, "about": self.about, "turn": self.turn, "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, body: JsonObject) -> Note:
        return cls(body["text"], body["about"], body["turn"], tuple(body["labels"]))


class Notes(Protocol):
    async def read(self, limit: int) -> list[Note]:
        """The latest notes of the session, oldest first."""
        ...

    async def write(self, flow: BaseFlow, note: Note) -> None:
        """Keep a note; the oldest go first."""
        ...


class Preferences(Protocol):
    async def find(self, words: str) -> list[JsonObject]:
        """What is remembered of the user that these words are about."""
        ...


class FlowNotes:
    """Notes in the working state, at hand as long as the flow that wrote them is."""

    def __init__(self, state: DialogueState) -> None:
        self._state = state

    async def read(self, limit: int) -> list[Note]:
        """See `Notes`."""
        flows = [*self._state.completed, *self._state.stack.flows]
        found = [Note.from_dict(body) for flow in flows for body in flow.notes.get(NOTE, ())]
        return sorted(found, key=lambda note: note.turn)[-limit:] if limit else []

    async def write(self, flow: BaseFlow, note: Note) -> None:
        """See `Notes`. A note that the flow has already is not kept twice."""
        kept: list[JsonObject] = flow.notes.setdefault(NOTE, [])
        body = Note(note.text[:LONGEST], note.about, note.turn, note.labels).serialize()
        if all(entry["text"] != body["text"] for entry in kept):
            kept.append(body)
            del kept[:-KEPT_PER_FLOW]
