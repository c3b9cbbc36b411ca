"""Session notes for tasks: short texts with the labels of their sources.

Notes are stored in the working state, with the flows that wrote them. The scratchpad also contains notes from
background flows and removed flows. The commit adds a turn's new notes to the scratchpad.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.state import DialogueState
from orchestrator.errors import Unavailable
from orchestrator.ports.memory.scratchpad import Entry, EntryKind, Scratchpad
from orchestrator.telemetry import get_logger
from orchestrator.types import DEFAULT_TENANT, JsonObject, SessionId, TenantId, TurnId, as_json

LONGEST = 500
"""Maximum length of a note, in characters."""
KEPT_PER_FLOW = 12
AT_HAND = 20
"""Maximum number of notes from completed flows in the working state, and of notes in a skill's prompt."""
_SHOWN = frozenset({EntryKind.FINDING, EntryKind.RESULT, EntryKind.PLAYBOOK})

_log = get_logger(__name__)


class NoteKind(StrEnum):
    FINDING = "finding"
    RESULT = "result"


@dataclass(frozen=True, slots=True)
class Note:
    """A note that a flow wrote in a session.

    `about`: the name of the flow that wrote the note. `labels`: the capability labels of its sources (PX-3).
    """

    text: str
    about: str
    turn: int
    labels: tuple[str, ...] = ()
    kind: NoteKind = NoteKind.FINDING

    @classmethod
    def from_dict(cls, body: JsonObject) -> Note:
        kind = NoteKind(body.get("kind", NoteKind.FINDING))
        return cls(body["text"], body["about"], body["turn"], tuple(body["labels"]), kind)


@dataclass(frozen=True, slots=True)
class SessionNotes:
    """Notes in the working state, which exist as long as the flows that wrote them, and in the scratchpad.

    `pad`: the scratchpad of `session_id`, which workers and background flows share, or None if there is none. If
    the scratchpad is unavailable, only notes in the working state are returned.
    """

    state: DialogueState
    pad: Scratchpad | None = None
    tenant_id: TenantId = DEFAULT_TENANT
    session_id: SessionId | None = None

    async def read(self, limit: int) -> list[Note]:
        """Return at most `limit` of the session's latest notes, oldest first."""
        flows = [*self.state.completed, *self.state.stack.flows]
        found = [Note.from_dict(body) for flow in flows for body in flow.progress.scratchpad]
        own = sorted(found, key=lambda note: note.turn)[-limit:] if limit else []
        known = {note.text for note in own}
        shared = [
            Note(entry.text, entry.flow, 0, entry.labels)
            for entry in sorted(await self._shared(), key=lambda entry: entry.at)
            if entry.text and entry.text not in known
        ]
        return [*shared, *own][-limit:] if limit else []

    async def _shared(self) -> Collection[Entry]:
        if self.pad is None or self.session_id is None:
            return ()
        try:
            return await self.pad.read(self.tenant_id, self.session_id, kinds=_SHOWN)
        except Unavailable as error:
            _log.warning("Could not read the scratchpad.", session=self.session_id, error=error)
            return ()

    async def write(self, flow: BaseFlow, note: Note) -> None:
        """Add a note to a flow, evicting its oldest note if necessary, unless the flow already has this text."""
        kept = flow.progress.scratchpad
        body = as_json(note) | {"text": note.text[:LONGEST]}
        if all(entry["text"] != body["text"] for entry in kept):
            flow.progress.keep([*kept, body][-KEPT_PER_FLOW:])


def drop_old_notes(state: DialogueState) -> None:
    """Drop the oldest notes from completed flows beyond `AT_HAND`, except notes from this turn (ST-3)."""
    if sum([len(flow.progress.scratchpad) for flow in state.completed]) <= AT_HAND:
        return
    room = AT_HAND
    for flow in reversed(state.completed):
        notes = flow.progress.scratchpad
        of_this_turn = sum([note["turn"] == state.turn for note in notes])
        kept = notes[len(notes) - min(len(notes), max(room, of_this_turn)) :]
        room = max(0, room - len(kept))
        if len(kept) < len(notes):
            flow.progress.keep(kept)


def entries_of_turn(flows: Iterable[BaseFlow], turn: int, turn_id: TurnId, at: float) -> list[Entry]:
    """Convert the notes that `flows` wrote in a turn to scratchpad entries. `at`: the time, in Unix seconds."""
    notes = [
        Note.from_dict(body) for flow in flows for body in flow.progress.scratchpad if body["turn"] == turn
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
