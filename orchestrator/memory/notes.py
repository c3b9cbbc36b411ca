"""Keep the scratchpad as PEX sees it: short notes of the session, with the labels of what they were made from.

`FlowNotes` keeps them in the working state, with the flows that wrote them. `SharedNotes` reads those of
Internal flows and of flows long gone as well; what a turn adds goes there when it is committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.errors import Unavailable
from orchestrator.ports.memory.preferences import Preference
from orchestrator.ports.memory.scratchpad import Entry, EntryKind, Scratchpad
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId

NOTE = "scratchpad"
LONGEST = 500
"""Characters of one note."""
KEPT_PER_FLOW = 12
AT_HAND = 20
"""Notes of completed flows that the working state holds; nobody is given more at once."""
_SHOWN = frozenset({EntryKind.FINDING, EntryKind.RESULT, EntryKind.PLAYBOOK})

_log = get_logger(__name__)


class NoteKind(StrEnum):
    FINDING = "finding"
    """Something worth knowing."""
    RESULT = "result"
    """What became of a task."""


@dataclass(frozen=True, slots=True)
class Note:
    """`about`: the dact of the flow that wrote it. `labels`: of the data it was made from (PX-3)."""

    text: str
    about: str
    turn: int
    labels: tuple[str, ...] = ()
    kind: NoteKind = NoteKind.FINDING

    def serialize(self) -> JsonObject:
        body: JsonObject = {
            "text": self.text,
            "about": self.about,
            "turn": self.turn,
            "labels": list(self.labels),
        }
        if self.kind is not NoteKind.FINDING:
            body["kind"] = self.kind.value
        return body

    @classmethod
    def from_dict(cls, body: JsonObject) -> Note:
        kind = NoteKind(body.get("kind", NoteKind.FINDING))
        return cls(body["text"], body["about"], body["turn"], tuple(body["labels"]), kind)


class Notes(Protocol):
    async def read(self, limit: int) -> list[Note]:
        """List the latest notes of the session, oldest first."""
        ...

    async def write(self, flow: BaseFlow, note: Note) -> None:
        """Keep a note; the oldest go first."""
        ...


class Preferences(Protocol):
    async def rules(self, flow: BaseFlow, slots: Iterable[SlotSpec]) -> dict[str, Preference]:
        """Look up, by slot, the value that is remembered for it (PX-4)."""
        ...

    async def find(self, words: str) -> list[Preference]:
        """List what is remembered of the user, what these words are about first."""
        ...


@dataclass(frozen=True, slots=True)
class FlowNotes:
    """Notes in the working state, at hand as long as the flow that wrote them is."""

    state: DialogueState

    async def read(self, limit: int) -> list[Note]:
        """See `Notes`."""
        flows = [*self.state.completed, *self.state.stack.flows]
        found = [Note.from_dict(body) for flow in flows for body in flow.notes.get(NOTE, ())]
        return sorted(found, key=lambda note: note.turn)[-limit:] if limit else []

    async def write(self, flow: BaseFlow, note: Note) -> None:
        """See `Notes`. A note that the flow has already is not kept twice."""
        kept: list[JsonObject] = flow.notes.get(NOTE, [])
        body = note.serialize() | {"text": note.text[:LONGEST]}
        if all(entry["text"] != body["text"] for entry in kept):
            flow.notes[NOTE] = [*kept, body][-KEPT_PER_FLOW:]


@dataclass(frozen=True, slots=True)
class SharedNotes:
    """Notes in the working state, and those in the scratchpad that workers and Internal flows share.

    The scratchpad is read when somebody asks for notes, not before; without it the state's own are given.
    """

    own: FlowNotes
    pad: Scratchpad
    tenant_id: TenantId
    session_id: SessionId

    async def read(self, limit: int) -> list[Note]:
        """See `Notes`."""
        own = await self.own.read(limit)
        known = {note.text for note in own}
        try:
            entries = await self.pad.read(self.tenant_id, self.session_id, kinds=_SHOWN)
        except Unavailable as error:
            _log.warning("The scratchpad cannot be read.", session=self.session_id, error=error)
            return own
        shared = [
            Note(entry.text, entry.flow, 0, entry.labels, NoteKind.FINDING)
            for entry in sorted(entries, key=lambda entry: entry.at)
            if entry.text and entry.text not in known
        ]
        return [*shared, *own][-limit:] if limit else []

    async def write(self, flow: BaseFlow, note: Note) -> None:
        """See `Notes`."""
        await self.own.write(flow, note)


def drop_old_notes(state: DialogueState) -> None:
    """Drop the oldest notes of completed flows (ST-3); those of this turn stay until they have been sent."""
    if sum([len(flow.notes.get(NOTE, ())) for flow in state.completed]) <= AT_HAND:
        return
    room = AT_HAND
    for flow in reversed(state.completed):
        notes: list[JsonObject] | None = flow.notes.get(NOTE)
        if notes is None:
            continue
        of_this_turn = sum([note["turn"] == state.turn for note in notes])
        kept = notes[len(notes) - min(len(notes), max(room, of_this_turn)) :]
        room = max(0, room - len(kept))
        if len(kept) < len(notes):
            flow.notes[NOTE] = kept
        if not kept:
            flow.notes.pop(NOTE, None)


def entries_of_turn(flows: Iterable[BaseFlow], turn: int, turn_id: TurnId, at: float) -> list[Entry]:
    """Collect the notes that these flows left in a turn, for the scratchpad. Unix seconds."""
    notes = [
        Note.from_dict(body) for flow in flows for body in flow.notes.get(NOTE, ()) if body["turn"] == turn
    ]
    return [
        Entry(
            flow=note.about,
            origin=f"turn {turn_id}",
            kind=EntryKind(note.kind.value),
            at=at,
            text=note.text,
            labels=note.labels,
            entry_id=f"note_{turn_id}_{place}",
        )
        for place, note in enumerate(notes)
    ]
