"""Fixed lists of messages: plain “yes” and “no” (PX-18), and small talk that every assistant answers (NL-2)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.dialogue.understanding import Mention, MessageKind, Source, Understanding
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.plain_yes import NO_OFFER, Offer, PlainAnswers
from orchestrator.nlu.protocol import Message, Reader, Reading
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.nlu.text import key_of

_DEFAULT = "en"
_PARTS = re.compile(r"[,.!?;…¿¡]+\s*|\s+-+\s+")
_LONGEST = 120
"""Maximum length of small talk, in characters."""


class PlainReader:
    """NLU component for plain “yes” and “no”, unless the open question asks only for a slot's value."""

    def __init__(self, answers: PlainAnswers, setup: ReaderSetup) -> None:
        self._answers = answers
        self._lexicon = setup.system1.lexicon
        self._find = setup.system1.slots_for

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        question = context.question
        if question.slot is not None and not question.confirming:
            return None
        kind: MessageKind | None = None
        if self._answers.refuses(message.text):
            kind = MessageKind.DENIAL
        elif self._answers.agrees(message.text, self._offer(message, context), message.english):
            kind = MessageKind.CONFIRMATION
        if kind is None:
            return None
        plain = kind is MessageKind.CONFIRMATION
        return Reading(Understanding(kind, Source.COMMAND, message.text, context.intent, plain=plain))

    def _offer(self, message: Message, context: NluContext) -> Offer:
        """Return the words of the pending call that a plain “yes” may repeat.

        Return `NO_OFFER` if no call waits for confirmation, or if the message changes one of its values.
        """
        active, question = context.active, context.question
        if active is None or not question.confirming:
            return NO_OFFER
        said: Mapping[str, Mention] = self._find(message.english, active, context)
        if any(context.values.get(name) != one.value for name, one in said.items()):
            return NO_OFFER
        held = [value for value in context.values.values() if isinstance(value, str)]
        texts = [*(one.text for one in said.values()), *held]
        return Offer.of(self._lexicon.to_english(question.words), active.dact, texts)


def make(setup: ReaderSetup) -> Reader:
    files, english = [file for file in setup.lexicons if file.agree], setup.domain.lexicons.get(_DEFAULT, ())
    return PlainReader(PlainAnswers(files or english, english), setup).read


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """NLU component for small talk. `known`: kinds of small talk by normalized words, or None for courtesies."""

    known: Mapping[str, str | None]

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Interpret a message that is only small talk, by its most important part, or return None."""
        if len(message.text) > _LONGEST or context.asks_for_text:
            return None
        parts = [self._shorten(key_of(part)) for part in _PARTS.split(message.text) if part.strip()]
        if not parts or not all(map(self.known.__contains__, parts)):
            return None
        said = [name for part in parts if (name := self.known[part]) is not None]
        if not said:
            return None
        name = min(said, key=_WEIGHTS.index)
        kind = MessageKind.DIGRESSION if name in _ASIDE else MessageKind.CHITCHAT
        return Reading(Understanding(kind, Source.COMMAND, message.text, target=name))

    def _shorten(self, part: str) -> str:
        """Remove known words before other small talk, such as “ugh” from “ugh this is annoying”."""
        first, _, rest = part.partition(" ")
        return self._shorten(rest) if part not in self.known and first in self.known and rest else part


_WEIGHTS = ("complaint", "repeat", "certainty", "who_are_you", "how_are_you", "goodbye", "thanks")
_ASIDE = frozenset({"repeat", "certainty"})


def make_talk(setup: ReaderSetup) -> Reader:
    known: dict[str, str | None] = {key_of(one): None for file in setup.lexicons for one in file.courtesies}
    for file in setup.lexicons:
        for name, lines in file.talk.items():
            known |= {key_of(one): name for line in lines for one in line.split("|")}
    return SmallTalk(known).read
