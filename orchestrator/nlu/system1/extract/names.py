"""Unlisted names, recognized by capitalization, and quoted text."""

import re
from collections.abc import Mapping

from orchestrator.nlu.system1.extract.found import CODE, NAME, QUOTE, Found, Reading
from orchestrator.nlu.text import Utterance, word_set

_QUOTED = re.compile(r"[\"“”«]([^\"“”«»]{1,200})[\"“”»]|(?<!\w)['‘]([^'‘’]{2,200})['’](?!\w)")
_CODE = re.compile(
    r"\b(?=[A-Z0-9-]{4,16}\b)(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9]+(?:-[A-Z0-9]+)*\b", re.IGNORECASE
)
_NEVER = word_set(
    "i i'm i'd i'll i've yes no ok okay yeah yep hi hello hey please thanks thank what which who where "
    "when why how can could would will is are do does it it's that that's the a an my we you"
)
_CAPITAL = "[A-Z\u00c0-\u00d6\u00d8-\u00de]"
_LINK = r"[’'-]| ?& ?| (?:(?:of|the|de|la|le|du|del|da|di|van|von) )*|(?<=\b(?:St|Dr|Mr|Ms|Jr|Ft|Mt))\. "
_RUN = re.compile(rf"\b{_CAPITAL}[\w'’]*(?:(?:{_LINK})(?!I\b)(?:{_CAPITAL}|\d)[\w'’]*){{0,7}}")
"""A capitalized word, then capitalized words or numbers, with short connecting words between them."""


def find_names(utterance: Utterance, common: frozenset[str], typed: list[Found]) -> list[Found]:
    """Find runs of capitalized words ("Sing To Me Instead"), which stop at dates, times and amounts.

    `common`: words that are lowercase in the examples. At the start of a sentence, these words do not begin a
    name, because every sentence starts with a capital.
    """
    text, starts, ends = utterance.text, utterance.starts, utterance.ends
    if text.isupper() or text.islower():
        return []
    blocked = {token for item in typed for token in range(*utterance.token_span(item.start, item.end))}
    found: list[Found] = []
    for run in _RUN.finditer(text):
        first, last = utterance.token_span(*run.span())
        while first < last and (first in blocked or not _begins(utterance, first, common)):
            first += 1
        last = next((token for token in range(first, last) if token in blocked), last)
        if first < last:
            name = text[starts[first] : ends[last - 1]]
            found.append(Found(starts[first], ends[last - 1], NAME, Reading(name)))
    return found


def _begins(utterance: Utterance, index: int, common: frozenset[str]) -> bool:
    words = utterance.words
    is_opening = index == 0 or (words[index - 1] in {".", "?", "!", ",", ":"} and words[index] in common)
    is_word = words[index] in _NEVER or (is_opening and words[index] in common)
    return utterance.text[utterance.starts[index]].isupper() and not is_word


def find_quotes(utterance: Utterance) -> list[Found]:
    found: list[Found] = []
    for match in _QUOTED.finditer(utterance.text):
        group = 1 if match.group(1) is not None else 2
        inner = match.group(group).strip()
        if inner:
            found.append(Found(match.start(group), match.end(group), QUOTE, Reading(inner)))
    return found


def find_codes(utterance: Utterance) -> list[Found]:
    """Find codes such as booking references: letters mixed with digits. Convert them to upper case."""
    return [
        Found(match.start(), match.end(), CODE, Reading(match.group().upper()))
        for match in _CODE.finditer(utterance.text)
    ]


def find_patterns(
    utterance: Utterance, patterns: Mapping[str, re.Pattern[str]], common: frozenset[str]
) -> list[Found]:
    """Find spans that match a declared pattern. Patterns in capitals also match lower case.

    An ordinary word is not a code, even before a number: "make it 1" does not name flight IT 1.
    """
    text = utterance.text
    capitals = text.upper() if text.isascii() else text
    found: list[Found] = []
    for kind, pattern in patterns.items():
        if pattern.search(text) is not None:
            matches = pattern.finditer(text)
        elif pattern.search(capitals) is not None:
            matches = pattern.finditer(capitals)
        else:
            continue
        found += [
            Found(match.start(), match.end(), kind, Reading(match.group()))
            for match in matches
            if match.end() > match.start()
            and _stands_alone(text, match.start(), match.end())
            and not _is_ordinary(text[match.start() : match.end()], common)
        ]
    return found


def _is_ordinary(said: str, common: frozenset[str]) -> bool:
    word, _, number = said.partition(" ")
    return (not number or number.isdigit()) and not word.isupper() and word.lower() in common


def _stands_alone(text: str, start: int, end: int) -> bool:
    before = start > 0 and text[start - 1].isalnum()
    after = end < len(text) and text[end].isalnum()
    return not before and not after
