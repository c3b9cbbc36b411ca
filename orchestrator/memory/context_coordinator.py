"""Views of the conversation so far (CO-1).

The views use the working state, which contains recent messages and a summary of earlier messages. The store
has the full history.
"""

from dataclasses import dataclass

from orchestrator.dialogue.records import History, Message

RECENT = 7
SYSTEM = "system"
LEAD = "Summary of what was said before: "


@dataclass(frozen=True, slots=True)
class ContextCoordinator:
    history: History

    def recent(self, count: int = RECENT) -> list[Message]:
        return list(self.history.messages[-count:]) if count > 0 else []

    def summary(self) -> Message | None:
        """Return the summary of earlier messages as a system message, or None if there is no summary."""
        if self.history.summary is None:
            return None
        return Message(SYSTEM, LEAD + self.history.summary.text, self.history.summary.through_turn)

    def with_summary(self, count: int = RECENT) -> list[Message]:
        summary, recent = self.summary(), self.recent(count)
        return recent if summary is None else [summary, *recent]

    def show_recent(self) -> str:
        return "\n".join(f"{m.role}: {m.text}" for m in self.with_summary())

    def compile_history(self, turns: int = 3, *, keep_system: bool = False) -> str:
        """Return the messages of the last `turns` turns as text, one line per message.

        `keep_system`: include system messages, starting with the summary.
        """
        kept = [m for m in self.history.messages if keep_system or m.role != SYSTEM]
        last_turns = sorted({m.turn for m in kept})[-turns:] if turns > 0 else []
        lines = [f"{m.role}: {m.text}" for m in kept if m.turn in last_turns]
        summary = self.summary() if keep_system else None
        return "\n".join(lines if summary is None else [f"{summary.role}: {summary.text}", *lines])
