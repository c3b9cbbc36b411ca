"""The seven checks before anything is understood (NL-1). Each costs microseconds, whatever the text.

A refused message is a value that says why; nothing here raises.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from orchestrator.dialogue.understanding import MessageKind, Rejection, Source, Understanding
from orchestrator.domain.configuration import Guardrails
from orchestrator.nlu.commands import Commands
from orchestrator.nlu.language import is_supported
from orchestrator.nlu.situation import Situation
from orchestrator.nlu.text import clean

LONGEST_READ = 65_536
"""Characters; the doors refuse longer messages, and only this much is looked at."""
_ROLE_MARKERS = re.compile(
    r"<\|[^|<>]{0,40}\|>|\[/?INST\]|<</?SYS>>|</?s>|<(?:start|end)_of_turn>"
    r"|(?:^|\n)\s{0,8}#{2,4}\s{0,4}(?:system|assistant|user|human|instruction)s?\s{0,4}:"
    r"|(?:^|\n)\s{0,8}(?:system|assistant)\s{0,4}:\s|\x02|\x03|<\/?(?:system|assistant|tool_call|function_call)>",
    re.IGNORECASE,
)
_SINGLE_WORDS = frozenset("yn")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message that may be understood: its cleaned text."""

    text: str


def count_tokens(text: str) -> int:
    """Roughly the tokens a model would count: four bytes each, and never fewer than half the words."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return max((size + 3) // 4, text.count(" ") // 2)


class Preparation:
    """The checks for one domain, made once."""

    def __init__(self, guardrails: Guardrails, languages: tuple[str, ...], commands: Commands) -> None:
        self._guardrails = guardrails
        self._languages = languages
        self._commands = commands
        self._reserved = tuple(token.lower() for token in guardrails.reserved_tokens)

    def prepare(self, raw: str, situation: Situation) -> Prepared | Understanding:
        """Check a message: the cleaned text, or what is already understood of it (a command, a refusal).

        A single character passes when it can answer the open question, and so does a repetition
        when something is open, since the same words may answer two questions.
        """
        if count_tokens(raw) > self._guardrails.max_tokens:
            return refuse(raw[:200], Rejection.TOO_LONG)
        text = clean(raw[:LONGEST_READ])
        if not text or not _says_something(text):
            return refuse(text, Rejection.EMPTY)
        if self._has_reserved(raw) or self._has_reserved(text):
            return refuse(text, Rejection.RESERVED_TOKENS)
        latest = situation.completed[0].spec.dact if situation.completed else None
        command = self._commands.match(text, latest)
        if command is not None:
            return command
        if len(text) < self._guardrails.min_characters and not _fits_question(text, situation):
            return refuse(text, Rejection.TOO_SHORT)
        if not situation.open and text.casefold() == clean(situation.previous).casefold():
            return refuse(text, Rejection.REPEATED)
        if not is_supported(text, self._languages):
            return refuse(text, Rejection.UNSUPPORTED_LANGUAGE)
        return Prepared(text)

    def _has_reserved(self, text: str) -> bool:
        folded = text.lower()
        return any(token in folded for token in self._reserved) or _ROLE_MARKERS.search(text) is not None


def refuse(text: str, why: Rejection) -> Understanding:
    """The understanding of a refused message."""
    return Understanding(MessageKind.UNKNOWN, Source.SYSTEM1, text, rejection=why)


def _fits_question(text: str, situation: Situation) -> bool:
    if situation.confirming or situation.options:
        return text.isdigit() or text.lower() in _SINGLE_WORDS
    return situation.asked is not None and text.isalnum()


def _says_something(text: str) -> bool:
    """Whether there is a letter, a number or a sign of money: emoji and punctuation alone say nothing."""
    return any(char.isalnum() or unicodedata.category(char) == "Sc" for char in text[:2_000])
