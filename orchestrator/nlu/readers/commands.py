"""Tier 0: message patterns that lead straight to a flow or a declared answer, with score 1.0 (NL-1).

Patterns come from the domain's configuration and are compiled once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.domain.configuration import Command
from orchestrator.domain.model import Answer
from orchestrator.types import Dact

LONGEST_COMMAND = 300
"""Longer messages are no commands; it also bounds what a pattern may cost."""


@dataclass(frozen=True, slots=True)
class Commands:
    """The compiled patterns with what each leads to."""

    patterns: tuple[tuple[re.Pattern[str], Command], ...]
    intents: Mapping[str, str]
    answers: Mapping[str, Answer]

    @classmethod
    def compile(
        cls,
        commands: Iterable[Command],
        flows: Mapping[Dact, FlowSpec],
        answers: Mapping[str, Answer],
        *,
        development: bool,
    ) -> Commands:
        """Take the commands that count here: a developer's shortcuts only in development."""
        patterns = tuple(
            (re.compile(command.pattern, re.IGNORECASE), command)
            for command in commands
            if development or not command.development
        )
        return cls(patterns, {dact: spec.intent for dact, spec in flows.items()}, answers)

    def match(self, text: str, completed: str | None = None) -> Understanding | None:
        """Read a message as a command; None when no pattern matches it whole.

        `completed`: the task that was completed last.
        """
        if len(text) > LONGEST_COMMAND:
            return None
        for pattern, command in self.patterns:
            match = pattern.fullmatch(text)
            if match is not None and (not command.after or completed in command.after):
                return self._understand(text, command, match)
        return None

    def _understand(self, text: str, command: Command, match: re.Match[str]) -> Understanding:
        if command.flow is None:
            answer = self.answers.get(command.answer or "")
            kind = MessageKind.DIGRESSION if answer and answer.digression else MessageKind.CHITCHAT
            digression = answer.digression if answer else None
            return Understanding(kind, Source.COMMAND, text, target=command.answer, digression=digression)
        slots = {
            name: Mention(value, value) for name, value in match.groupdict().items() if value is not None
        }
        flows = (FlowScore(Dact(command.flow), 1.0),)
        return Understanding(
            MessageKind.TASK, Source.COMMAND, text, self.intents.get(command.flow), flows, slots
        )
