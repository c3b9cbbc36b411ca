"""Conversation context for prompts and skills (CO-1)."""

from __future__ import annotations

from orchestrator.dialogue.records import Summary
from orchestrator.dialogue.state import DialogueState
from orchestrator.memory.context_coordinator import ContextCoordinator
from orchestrator.types import SessionId


def spoken(turns: int, summary: Summary | None = None) -> ContextCoordinator:
    state = DialogueState.new(SessionId("any"))
    for state.turn in range(1, turns + 1):
        state.say("user", f"question {state.turn}")
        if state.turn == 2:
            state.say("system", "a note")
        state.say("agent", f"answer {state.turn}")
    state.history.summary = summary
    return ContextCoordinator(state.history)


def test_the_last_seven_utterances_are_at_hand() -> None:
    recent = spoken(6).recent()

    assert [message.text for message in recent][-2:] == ["question 6", "answer 6"]
    assert len(recent) == 7
    assert spoken(6).recent(0) == []


def test_the_summary_is_an_entry_of_the_system_before_the_last_utterances() -> None:
    coordinator = spoken(6, Summary("They greeted us.", 3))
    first, *rest = coordinator.with_summary()

    assert (first.role, first.turn) == ("system", 3)
    assert "They greeted us." in first.text
    assert rest == coordinator.recent()
    assert coordinator.show_recent().startswith(f"system: {first.text}\nagent: answer 3")


def test_a_history_has_whole_turns_and_the_system_s_entries_only_when_wanted() -> None:
    coordinator = spoken(3, Summary("They greeted us.", 1))

    said = "user: question 2\nagent: answer 2\nuser: question 3\nagent: answer 3"
    assert coordinator.compile_history(2) == said
    with_system = coordinator.compile_history(2, keep_system=True)
    assert "They greeted us." in with_system.splitlines()[0]
    assert "system: a note" in with_system
    assert coordinator.compile_history(0) == ""
