"""Plain “yes” and “no”, from a fixed list for each language (PX-18).

Only a plain “yes” confirms a side effect. Longer agreement does not.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from orchestrator.domain.schema import LexiconFile
from orchestrator.nlu.text import clean, tokenize, word_set

Words = tuple[str, ...]

_SKIN_TONES = dict.fromkeys(range(0x1F3FB, 0x1F400))
_MARKS = frozenset(",.!-–")
_HESITATION = re.compile(r"\.\s*\.|…")
_MOST_TOKENS = 24
_PRONOUNS = word_set("it them")
_POINTING = word_set("that this these those")
_DETERMINERS = word_set("the my our this that these those")
_BEFORE_VALUES = word_set("to from on at for in the and")
_ADDRESSED = word_set("you")
"""Pronouns after the verb in translated polite forms, such as German “buchen Sie es”."""
_AFTER_DEED = word_set("now")
_OFFERING = word_set("shall should i we do go ahead the a an my your it that this them these those now again")
"""Words in an offer that don't name the offered call."""
_AMBIGUOUS = word_set("change")
"""Verbs that can reject an offer, such as “change it” after an offered change."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Words that a plain “yes” may repeat: `verbs` and `nouns` of the offered call, and `values` as written."""

    verbs: frozenset[str] = frozenset()
    nouns: frozenset[str] = frozenset()
    values: frozenset[Words] = frozenset()

    @classmethod
    def of(cls, question: str, dact: str, values: Iterable[str]) -> Self:
        """Create the offer for a pending call.

        `question`: the text of the confirmation question. `dact`: the flow name. `values`: the call's values.
        """
        put = question.replace("\n", ". ").rstrip(" .?!").rpartition(". ")[2]
        asked = {word for word in tokenize(clean(put)).words if word.isalpha()}
        named = set(dact.split("_"))
        verbs = (asked - _OFFERING) or named
        codes = {(word,) for word in tokenize(clean(question)).words if _is_code(word)}
        own = {tuple(tokenize(clean(value)).words) for value in values}
        return cls(frozenset(verbs), frozenset(named | (asked - _OFFERING)), frozenset({*codes, *own} - {()}))


NO_OFFER = Offer()


class PlainAnswers:
    def __init__(self, files: Iterable[LexiconFile], english: Iterable[LexiconFile] = ()) -> None:
        """Create a matcher. `english`: English lexicon files, for messages translated into English."""
        files, english = tuple(files), tuple(english)
        self._agree_english = _phrases(tuple(one for file in english for one in file.agree))
        self._around_english = _phrases(tuple(one for file in english for one in file.courtesies))
        self._agree = _phrases(tuple(one for file in files for one in file.agree))
        self._refuse = _phrases(tuple(one for file in files for one in file.refuse))
        self._around = _phrases(tuple(one for file in files for one in file.courtesies))

    def agrees(self, text: str, offer: Offer = NO_OFFER, english: str | None = None) -> bool:
        """Return whether the whole message is a plain “yes”.

        `english`: the message in English, which can name the offered call (“ja, buche es”).
        """
        if _Match(_read(text), self._agree, self._around, offer).succeeds:
            return True
        if english is None or english == text:
            return False
        return _Match(
            _read(english), self._agree_english, self._around_english, offer, deed_needed=True
        ).succeeds

    def refuses(self, text: str) -> bool:
        return _Match(_read(text), self._refuse, self._around, NO_OFFER).succeeds


@lru_cache(maxsize=64)
def _phrases(texts: tuple[str, ...]) -> frozenset[Words]:
    return frozenset(_read(text) for text in texts) - {()}


def _read(text: str) -> Words:
    """Return the tokens of a message without punctuation, or () if it is long or hesitates (“yes …”)."""
    said = text.translate(_SKIN_TONES).replace("’", "'")
    if _HESITATION.search(said):
        return ()
    words = [word for word in tokenize(clean(said)).words if word not in _MARKS]
    return tuple(words) if len(words) <= _MOST_TOKENS else ()


def _is_code(word: str) -> bool:
    return len(word) > 2 and not word.isalpha() and not word.isdigit() and word.isalnum()


@dataclass(frozen=True, slots=True)
class _Match:
    """A match of a message with courtesies, confirmations, the offered action and the offer's values.

    `deed_needed`: True if the message must name the offered action.
    """

    words: Words
    units: Collection[Words]
    around: Collection[Words]
    offer: Offer
    deed_needed: bool = False

    @property
    def succeeds(self) -> bool:
        return bool(self.words) and self._walk(0, granted=False, acted=False, last=())

    def _walk(self, place: int, *, granted: bool, acted: bool, last: Words) -> bool:
        """Return whether the tokens from `place` match. Two equal confirmations in a row don't (“yeah yeah”).

        `granted`: the tokens before `place` confirm. `acted`: they name the action. `last`: the last confirmation.
        """
        if place == len(self.words):
            return granted and (acted or not self.deed_needed)
        for end in range(place + 1, len(self.words) + 1):
            unit = self.words[place:end]
            is_yes = unit in self.units and unit != last
            if is_yes and self._walk(end, granted=True, acted=acted, last=unit):
                return True
            if unit in self.around and self._walk(end, granted=granted, acted=acted, last=last):
                return True
            if (
                not acted
                and self._is_deed(unit, granted)
                and self._walk(end, granted=True, acted=True, last=())
            ):
                return True
            if granted and self._is_value(unit) and self._walk(end, granted=True, acted=acted, last=last):
                return True
        return False

    def _is_deed(self, unit: Sequence[str], granted: bool) -> bool:
        """Return whether words name the offered call, such as “book it” or “book SK1465”."""
        verb, *rest = unit
        if verb not in self.offer.verbs or (verb in _AMBIGUOUS and not granted):
            return False
        while rest and rest[0] in _ADDRESSED:
            rest = rest[1:]
        while rest and rest[-1] in _AFTER_DEED:
            rest = rest[:-1]
        if not rest:
            return False
        if len(rest) == 1 and (rest[0] in _PRONOUNS or (granted and rest[0] in _POINTING)):
            return True
        if tuple(rest) in self.offer.values:
            return True
        has_determiner = rest[0] in _DETERMINERS
        things = rest[1:] if has_determiner else rest
        return has_determiner and bool(things) and self.offer.nouns.issuperset(things)

    def _is_value(self, unit: Words) -> bool:
        return unit in self.offer.values or (unit[0] in _BEFORE_VALUES and unit[1:] in self.offer.values)
