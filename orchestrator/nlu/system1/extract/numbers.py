"""Search for numbers in digits and words, ranges of numbers, and enumerated people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from orchestrator.dialogue.understanding import Mention
from orchestrator.domain.locales import Separators
from orchestrator.nlu.system1.extract.found import MONEY, NUMBER, RANGE, Candidate, Found, Reading
from orchestrator.nlu.text import Utterance, word_set
from orchestrator.saying import say

UNITS: dict[str, int] = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15,
    "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
TENS: dict[str, int] = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
    "ninety": 90,
}  # fmt: skip
SCALES: dict[str, int] = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
GROUPS: dict[str, int] = {"couple": 2, "pair": 2, "dozen": 12}
ORDINALS = {
    **{word: place for place, word in enumerate(
        ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"))},
    **{word: place for place, word in enumerate(
        ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"))},
    "last": -1,
    "bottom": -1,
    "top": 0,
}  # fmt: skip
NUMBERS = {
    word: place for place, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight"))
}
"""Positions in a list by ordinal."""
WORDS = frozenset(UNITS) | frozenset(TENS) | frozenset(SCALES) | frozenset(GROUPS)

DIGIT = re.compile(r"\d")
TIMES = word_set("day days night nights week weeks month months hour hours minute minutes")
_DIGITS = re.compile(
    r"(?<![\w.,])(?<![A-Za-z]-)[-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,6})?(?![\w]|[.,]\d)"
)
_NUMBER = r"[-+]?\d[\d,]{0,14}(?:\.\d{1,6})?"
_RANGES = (
    re.compile(rf"\bbetween\s+[$€£]?\s?({_NUMBER})\s+and\s+[$€£]?\s?({_NUMBER})", re.IGNORECASE),
    re.compile(rf"\bfrom\s+[$€£]?\s?({_NUMBER})\s+to\s+[$€£]?\s?({_NUMBER})", re.IGNORECASE),
    re.compile(rf"(?<![\w-])[$€£]?({_NUMBER})\s?(?:-|–|to)\s?[$€£]?({_NUMBER})(?![\w-])", re.IGNORECASE),
)
_AT_MOST = re.compile(
    rf"\b(?:under|below|less than|at most|up to|no more than|max(?:imum)?(?: of)?|cheaper than)\s+[$€£]?\s?({_NUMBER})",
    re.IGNORECASE,
)
_AT_LEAST = re.compile(
    rf"\b(?:over|above|more than|at least|no less than|min(?:imum)?(?: of)?)\s+[$€£]?\s?({_NUMBER})",
    re.IGNORECASE,
)


def read_separators(utterance: Utterance, separators: Separators) -> Utterance:
    """Convert the message's numbers to English format: "1.500,50" to "1,500.50". Offsets don't change."""
    pattern = _form_of(separators)
    swapped = pattern.sub(lambda found: found[0].translate(_swap(separators)), utterance.text)
    return utterance if swapped == utterance.text else replace(utterance, text=swapped)


@cache
def _form_of(separators: Separators) -> re.Pattern[str]:
    """Return a pattern for numbers in a locale's format that can't be English numbers."""
    decimal, group = (re.escape(mark) for mark in _marks(separators))
    return re.compile(
        rf"(?<![\w.,])(?:\d{{1,3}}(?:{group}\d{{3}})+(?:{decimal}\d{{1,6}})?|\d{{1,15}}{decimal}\d{{1,2}})(?![\w]|[.,]\d)"
    )


@cache
def _swap(separators: Separators) -> dict[int, str]:
    decimal, group = _marks(separators)
    return {ord(decimal): ".", ord(group): ","}


def _marks(separators: Separators) -> tuple[str, str]:
    """Return the decimal mark and the group separator in a cleaned text, which contains plain spaces."""
    return separators.decimal, " " if separators.group.isspace() else separators.group


def to_number(text: str) -> int | float:
    """Parse digits with optional thousands separators. The result is an int if the number is whole."""
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)


def find_numbers(utterance: Utterance) -> list[Found]:
    """Find numbers written in digits ("1,200", "-3.5") and in words ("twenty five", "a couple")."""
    found = [
        Found(match.start(), match.end(), NUMBER, Reading(to_number(match.group())))
        for match in (_DIGITS.finditer(utterance.text) if DIGIT.search(utterance.text) else ())
    ]
    words = utterance.words
    if WORDS.isdisjoint(words):
        return found
    index = 0
    while index < len(words):
        if words[index] in WORDS:
            last, value = read_words(words, index)
            start, end = utterance.starts[index], utterance.ends[last - 1]
            found.append(Found(start, end, NUMBER, Reading(value)))
            index = last
        else:
            index += 1
    return found


def read_words(words: list[str], first: int) -> tuple[int, int]:
    """Parse the number that begins at a token. Return the index after the number, and the value."""
    total = 0
    current = 0
    index = first
    ended_in_unit = False
    while index < len(words):
        word = words[index]
        if word in UNITS:
            if ended_in_unit:
                break
            current += UNITS[word]
            ended_in_unit = True
        elif word in TENS:
            if current % 100:
                break
            current += TENS[word]
        elif word in GROUPS:
            current = GROUPS[word] * max(current, 1)
            index += 1
            break
        elif word in SCALES:
            current = max(current, 1) * SCALES[word]
            if SCALES[word] >= 1_000:
                total += current
                current = 0
            ended_in_unit = False
        elif not (
            (_joins(words, index, first) and current % 100 == 0)
            or (word == "-" and _joins(words, index, first))
        ):
            break
        index += 1
    return max(index, first + 1), total + current


def _joins(words: list[str], index: int, first: int) -> bool:
    """Return whether an "and" or a hyphen is part of a number: "two hundred and five", "twenty-five"."""
    if index == first or index + 1 >= len(words):
        return False
    before, after = words[index - 1], words[index + 1]
    if words[index] == "and":
        return before in SCALES and (after in UNITS or after in TENS)
    return words[index] == "-" and before in TENS and after in UNITS


def find_ranges(utterance: Utterance) -> list[Found]:
    """Find ranges: "between 100 and 200", "2-4", "under 300", "at least 3".

    Values have the form [low, high], with null for an open end.
    """
    text = utterance.text
    if DIGIT.search(text) is None:
        return []
    found: list[Found] = []
    for pattern in _RANGES:
        for match in pattern.finditer(text):
            low, high = to_number(match.group(1)), to_number(match.group(2))
            invalid = say("more_than", low=match.group(1), high=match.group(2)) if low > high else None
            value = None if invalid else [low, high]
            found.append(Found(match.start(), match.end(), RANGE, Reading(value, (), invalid)))
    for pattern, upper in ((_AT_MOST, True), (_AT_LEAST, False)):
        for match in pattern.finditer(text):
            number = to_number(match.group(1))
            value = [None, number] if upper else [number, None]
            found.append(Found(match.start(), match.end(), RANGE, Reading(value)))
    return found


CURRENCIES: dict[str, str] = {
    "$": "USD", "us$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "buck": "USD", "bucks": "USD",
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
    "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "quid": "GBP",
    "¥": "JPY", "jpy": "JPY", "yen": "JPY", "chf": "CHF", "franc": "CHF", "francs": "CHF",
    "nok": "NOK", "sek": "SEK", "dkk": "DKK", "kr": "NOK", "krone": "NOK", "kroner": "NOK", "kronor": "SEK",
    "cad": "CAD", "aud": "AUD", "inr": "INR", "₹": "INR", "rupee": "INR", "rupees": "INR",
    "zloty": "PLN", "pln": "PLN",
}  # fmt: skip
_AMOUNT = r"\d{1,3}(?:,\d{3})+(?:\.\d{1,2})?|\d{1,12}(?:\.\d{1,2})?"
_WORDS = "|".join(sorted((name for name in CURRENCIES if name.isalpha()), key=len, reverse=True))
_SIGN_FIRST = re.compile(rf"(US\$|[$€£¥₹]|\b(?:{_WORDS})\b)\s?({_AMOUNT})(?:\s?([km])\b)?", re.IGNORECASE)
_SIGN_LAST = re.compile(rf"(?<![\w.,])({_AMOUNT})\s?([km])?\s?([$€£¥₹]|\b(?:{_WORDS})\b)", re.IGNORECASE)
_FACTORS = {"k": 1_000, "m": 1_000_000}


def find_money(utterance: Utterance) -> list[Found]:
    """Find amounts of money: "$50", "20 euros", "two hundred dollars". Values have amount and currency."""
    text = utterance.text
    found = [
        _found(match.start(), match.end(), match.group(2), match.group(3), match.group(1))
        for match in _SIGN_FIRST.finditer(text)
    ]
    taken = [(item.start, item.end) for item in found]
    found += [
        _found(match.start(), match.end(), match.group(1), match.group(2), match.group(3))
        for match in _SIGN_LAST.finditer(text)
        if all(match.end() <= start or match.start() >= end for start, end in taken)
    ]
    return found + _in_words(utterance)


def _found(start: int, end: int, amount: str, factor: str | None, sign: str) -> Found:
    number = to_number(amount) * _FACTORS.get((factor or "").lower(), 1)
    return Found(start, end, MONEY, Reading({"amount": number, "currency": CURRENCIES[sign.lower()]}))


def _in_words(utterance: Utterance) -> list[Found]:
    words = utterance.words
    found: list[Found] = []
    index = 0
    while index < len(words):
        if words[index] not in WORDS:
            index += 1
            continue
        last, number = read_words(words, index)
        if last < len(words) and words[last] in CURRENCIES:
            value = {"amount": number, "currency": CURRENCIES[words[last]]}
            found.append(Found(utterance.starts[index], utterance.ends[last], MONEY, Reading(value)))
        index = last
    return found


_PERSON = word_set(
    "wife husband partner girlfriend boyfriend spouse friend colleague mother father mum mom dad sister brother son "
    "daughter kid child baby toddler boss assistant grandma grandpa cousin adult"
)
_PEOPLE = word_set(
    "friends colleagues sisters brothers sons daughters kids children babies toddlers cousins adults"
)
_PARENTS = word_set("parents grandparents")
_NAMED = _PERSON | _PEOPLE | _PARENTS
_SELF = word_set("me myself i")
_OWNERS = word_set("my our his her their the")
TELL_PEOPLE = _NAMED | _SELF | {"of"}
"""Words that count people. A list of travelers must contain at least one of these words."""
_JOINS = word_set("and plus with , &")
_ALONE = re.compile(r"\b(?:only|just) (?:for )?(?:me|myself)\b(?! and\b)", re.IGNORECASE)
_FAMILY = re.compile(r"\b(?:family|group|party) of (\w+)\b", re.IGNORECASE)


def count_people(utterance: Utterance) -> tuple[int, str] | None:
    """Count enumerated travelers, including the user if applicable. Also return the words, or None.

    Return None if the message does not enumerate travelers.
    """
    words = utterance.words
    family = _FAMILY.search(utterance.text) if "of" in words else None
    if family is not None and (number := _small_number(family[1].lower())) is not None:
        return number, family.group()
    if (alone := _ALONE.search(utterance.text)) is not None:
        return 1, alone.group()
    if _NAMED.isdisjoint(words):
        return None
    for first in range(len(words)):
        last, people, named = _chain(words, first)
        if named:
            if "," in words[first:last] and _JOINS.intersection(words[first:last]) == frozenset(","):
                return None  # "me, my wife stays home" doesn't list travelers
            alone = not _SELF.intersection(words[first:last]) and first > 0 and words[first - 1] == "with"
            if people + alone > 1:
                return people + alone, utterance.surface(first, last)
            return None
    return None


_ONE = word_set("a an another")
_ONE_MORE = word_set("extra additional more further checked single")


def count_single(utterance: Utterance, things: Mapping[str, str]) -> dict[str, Mention]:
    """Count things with an indefinite article as 1: "add a bag". `things`: slots by the counted noun."""
    words = utterance.words
    counted: dict[str, Mention] = {}
    for thing in things.keys() & set(words):
        place = words.index(thing)
        first = place - 1 if words[place - 1] not in _ONE_MORE else place - 2
        if first >= 0 and words[first] in _ONE:
            counted[things[thing]] = Mention(1, utterance.surface(first, place + 1))
    return counted


_BEFORE_PRONOUN = word_set(
    "which that this the best another good nice great first second third fourth fifth next last any every no other "
    "cheap there"
)
_AFTER_PRONOUN = word_set("way of that which in near with")


def is_pronoun(utterance: Utterance, candidate: Candidate) -> bool:
    """Return whether "one" is not a number, as in "the best one" or "one way"."""
    words, first = utterance.words, candidate.first
    if candidate.last != first + 1 or words[first] != "one":
        return False
    before, after = words[first - 1] if first else "", words[first + 1] if first + 1 < len(words) else ""
    compared = before.endswith(("er", "est")) and len(before) > 4 and before not in {"after", "number"}
    return compared or before in _BEFORE_PRONOUN or after in _AFTER_PRONOUN


def _chain(words: list[str], first: int) -> tuple[int, int, bool]:
    """Count people joined by "and".

    Return the index after the last person, the count, and True if a person is named.
    """
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
    count = 1 if words[place] in {"a", "an"} else _small_number(words[place])
    if words[place] in _OWNERS or count is not None:
        place += 1
        if count is None and place < len(words) and (number := _small_number(words[place])) is not None:
            count, place = number, place + 1
    if place < len(words) and words[place] in _PERSON:
        return place + 1, count or 1, True
    if place < len(words) and (words[place] in _PARENTS or (words[place] in _PEOPLE and count is not None)):
        return place + 1, count or 2, True
    return place, 0, False


def _small_number(word: str) -> int | None:
    return int(word) if word.isdecimal() and len(word) < 3 else UNITS.get(word)
