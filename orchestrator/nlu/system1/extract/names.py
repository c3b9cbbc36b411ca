"""Unlisted names, recognized by capitals, and quoted text."""

import re
from collections.abc import Mapping

from orchestrator.nlu.system1.extract.found import CODE, NAME, PAIRS, QUOTE, Found, Reading
from orchestrator.nlu.system1.extract.numbers import DIGIT
from orchestrator.nlu.text import Utterance, word_set

_QUOTED = re.compile(r"[\"“”«]([^\"“”«»]{1,200})[\"“”»]|(?<!\w)['‘]([^'‘’]{2,200})['’](?!\w)")
_CODE = re.compile(
    r"\b(?=[A-Z0-9-]{4,16}\b)(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9]+(?:-[A-Z0-9]+)*\b", re.IGNORECASE
)
_PAIR = re.compile(r"\b([A-Za-z_][\w-]{0,40})\s*(?:=|:)\s*(\"[^\"]{0,200}\"|[^\s,;\"]{1,200})")
_INSIDE = word_set("of the and de la le du del da di van von & 's - . in at to a for on '")
_TIGHT = word_set("& 's - . of de la le du del da di van von '")
_NEVER = word_set(
    "i i'm i'd i'll i've yes no ok okay yeah yep hi hello hey please thanks thank what which who where "
    "when why how can could would will is are do does it it's that that's the a an my we you"
)
LONGEST = 8
_REGION = 2
_SHORT_FORMS = word_set("st dr mr mrs ms jr sr ft mt no vs")
_ADDRESS_DIGITS = 3


def find_names(utterance: Utterance, common: frozenset[str], typed: list[Found]) -> list[Found]:
    """Find runs of capitalized words ("Sing To Me Instead"), which stop at dates, times and amounts.

    `common`: words in lower case in the examples. At the start of a sentence, these words do not begin a
    name, because every sentence starts with a capital.
    """
    text, starts, ends, words = utterance.text, utterance.starts, utterance.ends, utterance.words
    if text.isupper() or text.islower():
        return []
    found: list[Found] = []
    blocked = {token for item in typed for token in range(*utterance.token_span(item.start, item.end))}
    index, count = 0, len(words)
    while index < count:
        if not text[starts[index]].isupper() or index in blocked or not _begins(words, index, common):
            index += 1
            continue
        last = _extent(text, starts, words, index)
        last = next((token for token in range(index + 1, last) if token in blocked), last)
        first = (
            index - 1 if index and _is_house_number(words[index - 1]) and index - 1 not in blocked else index
        )
        if last + 1 < count and words[last] == "#" and words[last + 1].isdigit():
            last += 2
        name = text[starts[first] : ends[last - 1]]
        found.append(Found(starts[first], ends[last - 1], NAME, Reading(name)))
        index = last
    return found


def _begins(words: list[str], index: int, common: frozenset[str]) -> bool:
    """Return whether a capitalized word begins a name."""
    if words[index] in _NEVER:
        return False
    opening = index == 0 or (words[index - 1] in {".", "?", "!", ",", ":"} and words[index] in common)
    if not opening:
        return True
    return words[index] not in common


def _extent(text: str, starts: list[int], words: list[str], first: int) -> int:
    """Find the end of a run: capitalized words or digits, with short connecting words between them."""
    last = first + 1
    limit = min(len(words), first + LONGEST)
    while last < limit:
        char = text[starts[last]]
        if (char.isupper() or char.isdigit()) and words[last] not in {"i", "i'm", "i'd"}:
            last += 1
            continue
        ahead = last + 1
        if words[last] == "-" and text[starts[last] - 1].isspace():
            break  # “Paris - Rome” are two names
        if words[last] in _TIGHT and (
            (ahead < limit and text[starts[ahead]].isupper()) or words[last] == "'s"
        ):
            if words[last] == "." and not _is_short_form(words[last - 1]):
                break
            last += 1
            continue
        break
    while last > first + 1 and (words[last - 1] in _INSIDE or _counts_something(text, starts, words, last)):
        last -= 1
    return _with_region(text, starts, words, last)


def _is_house_number(word: str) -> bool:
    return word.isdigit() and len(word) >= _ADDRESS_DIGITS


def _is_short_form(word: str) -> bool:
    return len(word) == 1 or word in _SHORT_FORMS


def _counts_something(text: str, starts: list[int], words: list[str], last: int) -> bool:
    """Return whether a final number belongs to the words after a run: "Vs Earthquakes 1 ticket"."""
    ends_in_number = words[last - 1].isdigit()
    return ends_in_number and last < len(words) and text[starts[last]].islower()


def _with_region(text: str, starts: list[int], words: list[str], last: int) -> int:
    """Extend a name by a region after a comma: "Fresno, CA"."""
    region = last + 1
    if (
        region < len(words)
        and words[last] == ","
        and len(words[region]) == _REGION
        and words[region] not in _SHORT_FORMS
        and text[starts[region]].isupper()
    ):
        return region + 1
    return last


def find_quotes(utterance: Utterance) -> list[Found]:
    """Find quoted texts, without the quotation marks."""
    found: list[Found] = []
    for match in _QUOTED.finditer(utterance.text):
        group = 1 if match.group(1) is not None else 2
        inner = match.group(group).strip()
        if inner:
            found.append(Found(match.start(group), match.end(group), QUOTE, Reading(inner)))
    return found


def find_codes(utterance: Utterance) -> list[Found]:
    """Find codes such as booking references: letters mixed with digits. Convert them to upper case."""
    if DIGIT.search(utterance.text) is None:
        return []
    return [
        Found(match.start(), match.end(), CODE, Reading(match.group().upper()))
        for match in _CODE.finditer(utterance.text)
    ]


def find_pairs(utterance: Utterance) -> list[Found]:
    """Find "key: value" and "key=value". All pairs of a message form one object."""
    text = utterance.text
    matches = list(_PAIR.finditer(text)) if "=" in text or ":" in text else []
    if not matches:
        return []
    value = {match.group(1): match.group(2).strip('"') for match in matches}
    return [Found(matches[0].start(), matches[-1].end(), PAIRS, Reading(value))]


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
