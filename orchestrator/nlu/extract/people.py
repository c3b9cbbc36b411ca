"""Counting people who are named instead of numbered: "me and my wife", "with two kids", "a family of four"."""

from __future__ import annotations

import re

from orchestrator.nlu.extract.numbers import UNITS
from orchestrator.nlu.text import Utterance, word_set

_ONE = word_set(
    "wife husband partner girlfriend boyfriend spouse friend colleague mother father mum mom dad sister brother son "
    "daughter kid child baby toddler boss assistant grandma grandpa cousin adult"
)
_SEVERAL = word_set(
    "friends colleagues sisters brothers sons daughters kids children babies toddlers cousins adults"
)
_SELF = word_set("me myself i")
_OWNERS = word_set("my our his her their the")
_JOINS = word_set("and plus with , &")
_FAMILY = re.compile(r"\b(?:family|group|party) of (\w+)\b", re.IGNORECASE)


def count_people(utterance: Utterance) -> tuple[int, str] | None:
    """Count who comes along, the speaker included where they are; gives the words too. None: nobody is named."""
    family = _FAMILY.search(utterance.text)
    if family is not None and (number := _number(family[1].lower())) is not None:
        return number, family.group()
    words = utterance.words
    for first in range(len(words)):
        last, people, named = _chain(words, first)
        if named:
            alone = not _SELF.intersection(words[first:last]) and first > 0 and words[first - 1] == "with"
            if people + alone > 1:
                return people + alone, utterance.surface(first, last)
            return None
    return None


def _chain(words: list[str], first: int) -> tuple[int, int, bool]:
    """Follow people joined by "and": the token after the last one, how many, and whether one is named."""
    place, people, named, last = first, 0, False, first
    while place < len(words):
        after, count, is_named = _person(words, place)
        if count == 0:
            break
        people, named, last = people + count, named or is_named, after
        place = after
        while place < len(words) and words[place] in _JOINS:
            place += 1
        if place == after:
            break
    return last, people, named


def _person(words: list[str], place: int) -> tuple[int, int, bool]:
    if words[place] in _SELF:
        return place + 1, 1, False
    count = 1 if words[place] in {"a", "an"} else _number(words[place])
    if words[place] in _OWNERS or count is not None:
        place += 1
        if count is None and place < len(words) and (number := _number(words[place])) is not None:
            count, place = number, place + 1
    if place < len(words) and words[place] in _ONE:
        return place + 1, count or 1, True
    if place < len(words) and words[place] in _SEVERAL and count is not None:
        return place + 1, count, True
    return place, 0, False


def _number(word: str) -> int | None:
    return int(word) if word.isdecimal() and len(word) < 3 else UNITS.get(word)
