"""Summaries that a turn makes due, and the scratchpad entries that go with them (IF table, RT-14)."""

from __future__ import annotations

from orchestrator.agent.steps.record import CHARACTERS_PER_TOKEN, SUMMARIZE_EVERY_TOKENS, find_due
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Summary
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.memory.notes import Note, NoteKind, SessionNotes, entries_of_turn
from orchestrator.ports.memory.scratchpad import Entry, EntryKind
from orchestrator.types import DEFAULT_TENANT, Dact, SessionId, TurnId
from parley.testing.memory import MemoryScratchpad
from tests.cases import for_each

BOUND = SUMMARIZE_EVERY_TOKENS * CHARACTERS_PER_TOKEN
SESSION = SessionId("any")


def spoken(turns: int, characters: int = 10, through: int = 0) -> DialogueState:
    state = DialogueState.new(SESSION)
    for state.turn in range(1, turns + 1):
        state.say("user", "x" * characters)
    state.history.summary = Summary("So far.", through) if through else None
    return state


@for_each(
    ("state", "due"),
    [
        (spoken(19), False),
        (spoken(20), True),
        (spoken(21), False),
        (spoken(40), True),
        (spoken(25, through=20), False),
        (spoken(40, through=20), True),
        (spoken(4, BOUND // 4), True),
        (spoken(3, BOUND // 4), False),
        (spoken(5, BOUND // 4), False),  # requested with the previous turn
        (spoken(8, BOUND // 4), True),
        (spoken(6, BOUND // 4, through=3), False),
        (spoken(7, BOUND // 4, through=3), True),
        (spoken(3, through=3), False),
    ],
)
def test_a_summary_is_due_every_twenty_turns_or_so_much_text(state: DialogueState, due: bool) -> None:
    assert find_due(state) is due


class Task(BaseFlow):
    spec = FlowSpec(dact=Dact("task"), dax="001", intent="Read", family=Family.READ)


async def noted() -> tuple[DialogueState, Task]:
    state, flow = DialogueState.new(SESSION), Task()
    state.completed.append(flow)
    notes = SessionNotes(state)
    for state.turn, text in ((1, "earlier"), (2, "found"), (2, "done")):
        kind = NoteKind.RESULT if text == "done" else NoteKind.FINDING
        await notes.write(flow, Note(text, flow.dact, state.turn, ("private",), kind))
    return state, flow


async def test_the_notes_of_a_turn_leave_with_it_and_keep_their_labels() -> None:
    _, flow = await noted()
    entries = entries_of_turn([flow], 2, TurnId("turn_9"), 5.0)

    assert [(entry.text, entry.kind, entry.labels) for entry in entries] == [
        ("found", EntryKind.FINDING, ("private",)),
        ("done", EntryKind.RESULT, ("private",)),
    ]
    assert [entry.entry_id for entry in entries] == ["note_turn_9_0", "note_turn_9_1"]


async def test_a_skill_reads_what_others_left_and_its_own_notes_once() -> None:
    state, flow = await noted()
    pad = MemoryScratchpad()
    by_others = [
        Entry("gather_context", "run 1", EntryKind.FINDING, 9.0, text="gathered", labels=("untrusted",)),
        Entry("summarize_session", "run 1", EntryKind.PROPOSAL, 9.0, data={}),
    ]
    own = entries_of_turn([flow], 2, TurnId("turn_9"), 5.0)
    await pad.put(DEFAULT_TENANT, SESSION, (*by_others, *own))
    notes = await SessionNotes(state, pad, DEFAULT_TENANT, SESSION).read(20)

    assert [note.text for note in notes] == ["gathered", "earlier", "found", "done"]
    assert notes[0].labels == ("untrusted",)
    assert [note.text for note in await SessionNotes(state, pad, DEFAULT_TENANT, SESSION).read(2)] == [
        "found",
        "done",
    ]
