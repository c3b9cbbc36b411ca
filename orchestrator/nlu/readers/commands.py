"""A domain's message patterns, which start a flow or give a declared answer with score 1.0 (NL-1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.domain.configuration import Command
from orchestrator.domain.model import Answer
from orchestrator.nlu.clauses import can_be_name
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reader, Reading
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.nlu.system1.requests import find_partings
from orchestrator.types import Dact

LONGEST_COMMAND = 300
"""Maximum length of a command, in characters. The limit also bounds the cost of matching patterns."""


@dataclass(frozen=True, slots=True)
class Commands:
    patterns: tuple[tuple[re.Pattern[str], Command], ...]
    flows: Mapping[Dact, FlowSpec]
    answers: Mapping[str, Answer]
    is_request: Callable[[str, NluContext], bool]
    """A function that returns whether a text requests a task."""

    @classmethod
    def compile(
        cls,
        commands: Iterable[Command],
        flows: Mapping[Dact, FlowSpec],
        answers: Iterable[Answer],
        *,
        is_request: Callable[[str, NluContext], bool] = lambda _text, _context: False,
        development: bool,
    ) -> Commands:
        """Compile the commands. Omit shortcuts for developers unless `development` is True."""
        patterns = tuple(
            (re.compile(command.pattern, re.IGNORECASE), command)
            for command in commands
            if development or not command.development
        )
        return cls(patterns, flows, {answer.name: answer for answer in answers}, is_request)

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Interpret a message as the first command that matches all of it, or return None.

        A command with `after` matches only if one of those flows was completed last. A request in a command's
        values (“I always fly business, so book …”) isn't part of the command and is interpreted later.
        """
        text = message.text
        for pattern, command in self.patterns if len(text) <= LONGEST_COMMAND else ():
            match = pattern.fullmatch(text)
            if match is None or (command.after and not _is_after(command, context)):
                continue
            first, rest = self._split(match, context)
            begun = pattern.fullmatch(first) if rest else match
            if begun is not None and not self._holds_clause(command, begun):
                return Reading(replace(self._understand(text, command, begun), later=rest))
        return None

    def _split(self, match: re.Match[str], context: NluContext) -> tuple[str, str]:
        """Return the message's text before a request in one of the command's values, and the request or ""."""
        spans = [match.span(name) for name in match.groupdict()]
        for start, end in find_partings(match.string):
            is_inside = any(first < start and end < last for first, last in spans)
            if is_inside and self.is_request(match.string[end:], context):
                return match.string[:start], match.string[end:]
        return match.string, ""

    def _holds_clause(self, command: Command, match: re.Match[str]) -> bool:
        """Return whether a value other than free text isn't a name: “for later”, “mine but not now”."""
        flow = self.flows.get(Dact(command.flow or ""))
        slots: Mapping[str, SlotSpec] = flow.slots if flow is not None else {}
        names = [said for name, said in match.groupdict().items() if said and not _is_text(slots.get(name))]
        return not all(map(can_be_name, names))

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


def _is_text(slot: SlotSpec | None) -> bool:
    return slot is not None and slot.is_free_text


def _is_after(command: Command, context: NluContext) -> bool:
    return bool(context.completed) and context.completed[0].spec.dact in command.after


def make(setup: ReaderSetup) -> Reader | None:
    commands, answers, system1 = setup.domain.config.commands, setup.domain.answers, setup.system1
    compiled = Commands.compile(
        commands, system1.flows, answers, is_request=system1.is_request, development=setup.development
    )
    return compiled.read if compiled.patterns else None
