"""Requests for another page of the last displayed table, recognized by a fixed list of phrases."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.dialogue.understanding import Digression, MessageKind, Source, Understanding
from orchestrator.domain.schema import PageWish
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.protocol import Message, Reader, Reading
from orchestrator.nlu.readers.setup import ReaderSetup
from orchestrator.nlu.text import key_of

_NUMBER = re.compile(r"\d+")
_PLACE = "0"
"""Placeholder for a number in normalized messages."""
_LONGEST = 80
"""Maximum length of a page request, in characters."""


@dataclass(frozen=True, slots=True)
class PageRequests:
    """NLU component for page requests. `known`: requested pages by normalized message. `courtesies`: ignored words."""

    known: Mapping[str, PageWish]
    courtesies: frozenset[str]

    async def read(self, message: Message, context: NluContext) -> Reading | None:
        """Interpret a page request, or return None for other messages.

        Also return None if no table was displayed, or if the open question asks for free text.
        """
        table, text = context.table, message.text
        if table is None or len(text) > _LONGEST or context.asks_for_text:
            return None
        number = _NUMBER.search(text)
        wish = self.known.get(self._strip(_fold(_NUMBER.sub(_PLACE, text))))
        if wish is None or (wish == "more" and (table.pages == 1 or context.question.is_open)):
            return None
        target = "next" if wish == "more" else wish
        if wish == "number" and number is not None:
            target = number.group()
        return Reading(
            Understanding(
                *(MessageKind.DIGRESSION, Source.COMMAND, text), target=target, digression=Digression.PAGE
            )
        )

    def _strip(self, key: str) -> str:
        """Remove courtesies, such as “please” from “the next page please”."""
        words = key.split()
        for length in (2, 1):
            if len(words) > length and " ".join(words[:length]) in self.courtesies:
                return self._strip(" ".join(words[length:]))
            if len(words) > length and " ".join(words[-length:]) in self.courtesies:
                return self._strip(" ".join(words[:-length]))
        return key


def _fold(text: str) -> str:
    """Return the normalized words without punctuation: “page 2” for “/page 2”."""
    return " ".join(word for word in key_of(text).split() if word[0].isalnum())


def make(setup: ReaderSetup) -> Reader:
    files = [*setup.domain.lexicons.get("en", ()), *setup.lexicons]
    known: dict[str, PageWish] = {
        _fold(one.replace("#", _PLACE)): wish
        for file in files
        for wish, lines in file.pages.items()
        for line in lines
        for one in line.split("|")
    }
    courtesies = frozenset(_fold(one) for file in files for one in file.courtesies)
    return PageRequests(known, courtesies).read
