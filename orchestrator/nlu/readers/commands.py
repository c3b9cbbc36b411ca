"""A domain's message patterns, which start a flow or give a declared answer with score 1.0 (NL-1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.domain.configuration import Command
from orchestrator.domain.model import Answer
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reader, Reading
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.types import Dact

LONGEST_COMMAND = 300
"""Maximum length of a command, in characters. The limit also bounds the cost of matching patterns."""


@dataclass(frozen=True, slots=True)
class Commands:
    patterns: tuple[tuple[re.Pattern[str], Command], ...]
    flows: Mapping[Dact, FlowSpec]
    answers: Mapping[str, Answer]

    @classmethod
    def compile(
        cls,
        commands: Iterable[Command],
        flows: Mapping[Dact, FlowSpec],
        answers: Iterable[Answer],
        *,
        development: bool,
    ) -> Commands:
        """Compile the commands. Omit shortcuts for developers unless `development` is True."""
        patterns = tuple(
            (re.compile(command.pattern, re.IGNORECASE), command)
            for command in commands
            if development or not command.development
        )
        return cls(patterns, flows, {answer.name: answer for answer in answers})

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Interpret a message as the first command that matches all of it, or return None.

        A command with `after` matches only if one of those flows was completed last.
        """
        text = message.text
        for pattern, command in self.patterns if len(text) <= LONGEST_COMMAND else ():
            match = pattern.fullmatch(text)
            if match is not None and (not command.after or _is_after(command, context)):
                return Reading(self._understand(text, command, match))
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
        dact = Dact(command.flow)
        flows, intent = (FlowScore(dact, 1.0),), self.flows[dact].intent if dact in self.flows else None
        return Understanding(MessageKind.TASK, Source.COMMAND, text, intent, flows, slots)


def _is_after(command: Command, context: NluContext) -> bool:
    return bool(context.completed) and context.completed[0].spec.dact in command.after


def make(setup: ReaderSetup) -> Reader | None:
    commands, answers = setup.domain.config.commands, setup.domain.answers
    compiled = Commands.compile(commands, setup.system1.flows, answers, development=setup.development)
    return compiled.read if compiled.patterns else None
