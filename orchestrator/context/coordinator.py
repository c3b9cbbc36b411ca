"""The Context Coordinator: the conversation so far, as other parts want to read it (CO-1).

Reads the working state's messages; the whole history is in the store.
"""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.dialogue.records import Message

RECENT = 7


class ContextCoordinator:
    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages

    def recent(self, count: int = RECENT) -> list[Message]:
        """The last messages, oldest first."""
        return list(self._messages[-count:])

    def compile_history(self, turns: int = 3, *, keep_system: bool = False) -> str:
        """The last turns as text, one line per message."""
        kept = [m for m in self._messages if keep_system or m.role != "system"]
        last_turns = sorted({m.turn for m in kept})[-turns:]
        return "\n".join(f"{m.role}: {m.text}" for m in kept if m.turn in last_turns)
