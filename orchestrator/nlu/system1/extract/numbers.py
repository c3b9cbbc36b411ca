"""Search for numbers and amounts of money, in digits and words, and count enumerated people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from orchestrator.dialogue.understanding import Mention
from orchestrator.domain.locales import Separators
from orchestrator.nlu.system1.extract.found import MONEY, NUMBER, Found, Reading
from orchestrator.nlu.text import Utterance, word_set

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
ORDINAL_NAMES = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
_ENDINGS = ("st", "nd", "rd", *["th"] * 7)
ORDINALS = {
    **{name: place for place, name in enumerate(ORDINAL_NAMES)},
    **{f"{place + 1}{ending}": place for place, ending in enumerate(_ENDINGS)},
    "last": -1,
    "bottom": -1,
    "top": 0,
}
"""Positions in a list, from 0, by ordinal. The last position is -1."""
WORDS = frozenset(UNITS) | frozenset(TENS) | frozenset(SCALES)

TIMES = word_set("day days night nights week weeks month months hour hours minute minutes")
_DIGITS = re.compile(
    r"(?<![\w.,])(?<![A-Za-z]-)[-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,6})?(?![\w]|[.,]\d)"
)


def read_separators(utterance: Utterance, separators: Separators) -> Utterance:
    """Return the message with numbers in English format: "1.500,50" as "1,500.50". Offsets don't change."""
    pattern, swap = _form_of(separators)
    swapped = pattern.sub(lambda found: found[0].translate(swap), utterance.text)
    return utterance if swapped == utterance.text else replace(utterance, text=swapped)


@cache
def _form_of(separators: Separators) -> tuple[re.Pattern[str], dict[int, str]]:
    """Return a pattern for a locale's numbers that can't be English, and the locale's separators in English."""
    mark, sep = (
        separators.decimal,
        " " if separators.group.isspace() else separators.group,
    )  # cleaned messages have only plain spaces
    decimal, group = re.escape(mark), re.escape(sep)
    pattern = rf"\d{{1,3}}(?:{group}\d{{3}})+(?:{decimal}\d{{1,6}})?|\d{{1,15}}{decimal}\d{{1,2}}"
    return re.compile(rf"(?<![\w.,])(?:{pattern})(?![\w]|[.,]\d)"), {ord(mark): ".", ord(sep): ","}


def to_number(text: str) -> int | float:
    """Parse digits with optional thousands separators. Return a float if the text has a decimal point."""
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)


def find_numbers(utterance: Utterance) -> list[Found]:
    """Find numbers written in digits ("1,200", "-3.5") and in words ("twenty five")."""
    found = [
        Found(match.start(), match.end(), NUMBER, Reading(to_number(match.group())))
        for match in _DIGITS.finditer(utterance.text)
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
    """Parse the number that begins at the token `first`. Return the index after the number, and its value."""
    total = current = 0
    place = first
    while place < len(words):
        word, after = words[place], words[place + 1 : place + 2]
        before = words[place - 1] if place > first else ""
        if word in UNITS and current % 10 == 0 and (current % 100 == 0 or UNITS[word] < 10 < current % 100):
            current += UNITS[word]
        elif word in TENS and current % 100 == 0:
            current += TENS[word]
        elif word in SCALES:
            current = max(current, 1) * SCALES[word]
            total, current = (total + current, 0) if SCALES[word] >= 1_000 else (total, current)
        elif not (before in _BEFORE_JOINS.get(word, ()) and after and after[0] in _SMALL):
            break
        place += 1
    return max(place, first + 1), total + current


_BEFORE_JOINS: Mapping[str, Mapping[str, int]] = {"and": SCALES, "-": TENS}
"""Words that can precede an “and” or a hyphen in a number: "two hundred and five", "twenty-five"."""
_SMALL = UNITS | TENS


CURRENCIES: dict[str, str] = {
    "$": "USD", "usd": "USD", "dollar": "USD", "dollars": "USD", "buck": "USD", "bucks": "USD",
    "€": "EUR", "eur": "EUR", "euro": "EUR", "euros": "EUR",
    "£": "GBP", "gbp": "GBP", "pound": "GBP", "pounds": "GBP", "quid": "GBP",
    "¥": "JPY", "jpy": "JPY", "yen": "JPY", "chf": "CHF", "franc": "CHF", "francs": "CHF",
    "nok": "NOK", "sek": "SEK", "dkk": "DKK", "kr": "NOK", "krone": "NOK", "kroner": "NOK", "kronor": "SEK",
    "cad": "CAD", "aud": "AUD", "inr": "INR", "₹": "INR", "rupee": "INR", "rupees": "INR",
    "zloty": "PLN", "pln": "PLN",
}  # fmt: skip


def find_money(utterance: Utterance) -> list[Found]:
    """Find amounts of money: "$50", "20 euros", "two hundred dollars". Values have amount and currency."""
    found: list[Found] = []
    for number in find_numbers(utterance):
        first, last = utterance.token_span(number.start, number.end)
        before, after = utterance.words[:first][-1:], utterance.words[last : last + 1]
        sign = next((word for word in (*before, *after) if word in CURRENCIES), None)
        if sign is not None:
            start = utterance.starts[first - 1] if sign in before else number.start
            end = number.end if sign in before else utterance.ends[last]
            value = {"amount": number.reading.value, "currency": CURRENCIES[sign]}
            found.append(Found(start, end, MONEY, Reading(value)))
    return found


_PERSON = (
    "wife|husband|partner|girlfriend|boyfriend|friend|colleague|mother|father|mum|mom|dad|sister|brother|son"
    "|daughter|kid|child|baby|boss|adult"
)
TELLS_PEOPLE = re.compile(rf"\b(?:me|myself|I|us|parents|{_PERSON})", re.IGNORECASE)
_COUNT = rf"(?:(?P<count>\d|an?|{'|'.join(UNITS)}) )?"
_SOMEBODY = re.compile(
    rf"(?P<self>\b(?:me|myself|I))\b|\b(?:(?:my|our|the) )?{_COUNT}(?P<who>parents|(?:{_PERSON})(?:s|ren|ies)?)\b",
    re.IGNORECASE,
)
_OF_US = re.compile(r"\b(\w+) of us\b", re.IGNORECASE)
_AND = re.compile(r",? (?:and|plus|with) |, ?", re.IGNORECASE)
_ALONE = re.compile(r"\b(?:only|just) (?:for )?(?:me|myself)\b(?! and\b)", re.IGNORECASE)


def count_people(utterance: Utterance) -> tuple[int, str] | None:
    """Return the number of enumerated travelers, including the user if mentioned, and the words used.

    Return None if the message does not enumerate travelers.
    """
    text = utterance.text
    if (alone := _ALONE.search(text)) is not None:
        return 1, alone.group()
    if (us := _OF_US.search(text)) is not None and (number := small_number(us[1].lower()) or 0) > 1:
        return number, us.group()
    chain: list[re.Match[str]] = []
    joins: list[str] = []
    for found in _SOMEBODY.finditer(text):
        join = text[chain[-1].end() : found.start()] if chain else ""
        if chain and _AND.fullmatch(join) is None:
            if any(one["who"] for one in chain):
                break
            chain, joins = [], []
        joins += [join] if chain else []
        chain.append(found)
    if not any(one["who"] for one in chain) or (joins and not any(join.strip(" ,") for join in joins)):
        return None  # "me, my wife stays home" doesn't list travelers
    counts = [_count_somebody(one) for one in chain]
    joined = "" if any(one["self"] for one in chain) else text[: chain[0].start()]
    people = sum(count or 0 for count in counts) + joined.endswith("with ")
    return (people, text[chain[0].start() : chain[-1].end()]) if people > 1 and None not in counts else None


def _count_somebody(found: re.Match[str]) -> int | None:
    """Return the number of people in one part, such as “two kids”, or None if unknown, as in “my kids”."""
    said, who = (found["count"] or "").lower(), (found["who"] or "").lower()
    if said:
        return 1 if said in {"a", "an"} else small_number(said)
    return 2 if who == "parents" else None if who.endswith(("s", "ren")) and who != "boss" else 1


_ONE = word_set("a an another")
_ONE_MORE = word_set("extra additional more further checked single")


def count_single(utterance: Utterance, things: Mapping[str, str]) -> dict[str, Mention]:
    """Return 1 for each slot whose noun follows an indefinite article: "add a bag". `things`: slots by noun."""
    words = utterance.words
    counted: dict[str, Mention] = {}
    for thing in things.keys() & set(words):
        place = words.index(thing)
        first = place - 1 if words[place - 1] not in _ONE_MORE else place - 2
        if first >= 0 and words[first] in _ONE:
            counted[things[thing]] = Mention(1, utterance.surface(first, place + 1))
    return counted


_BEFORE_ONE = word_set("for just only add is make it with and to need want book no")


def is_pronoun(utterance: Utterance, first: int, last: int) -> bool:
    """Return whether the “one” from `first` to `last` isn't a number, as in “the best one” or “one way”."""
    words = utterance.words
    is_number = first == 0 or words[first - 1] in _BEFORE_ONE
    is_one = words[first:last] == ["one"]
    return is_one and (not is_number or words[first + 1 : first + 2] in (["way"], ["of"], ["which"], ["in"]))


def small_number(word: str) -> int | None:
    """Return the number that a word names, if it is a word or has at most two digits, or None."""
    return int(word) if word.isdecimal() and len(word) < 3 else UNITS.get(word)
