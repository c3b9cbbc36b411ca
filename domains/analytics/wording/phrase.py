"""A message as a row of items: words, numbers, and names of the catalogue; slips of the pen repaired."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rapidfuzz.distance import OSA

from domains.analytics.wording.names import LONGEST, TOKEN, Meaning, Names
from domains.analytics.wording.vocabulary import FILLERS, MONTHS, ORDINARY, SMALL_NUMBERS, words

NOTHING = Meaning()
SHORTEST_REPAIRED, LONG = 5, 11
_MULTIPLES = {"k": 1_000, "m": 1_000_000}
_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?)([km%]?)", re.IGNORECASE)
_MEASURED = words(
    "much most least less more fewer total average mean median by per of plot sum highest lowest maximum minimum over"
)
"""Before a word that names a column and a value alike (“rain”), these say that the column is meant."""


@dataclass(frozen=True, slots=True)
class Item:
    """`word`: in small letters. `text`: without slips of the pen. `number`: what a number stands for, as text.

    `slip`: what was said, where it was taken for something else.
    """

    word: str
    text: str
    meaning: Meaning = NOTHING
    number: str | None = None
    slip: str = ""

    @property
    def kind(self) -> str:
        """What a rule sees in its place."""
        meaning = self.meaning
        if self.number is not None:
            return "YEAR" if self.is_year else "N"
        if meaning.tables:
            return "TABLE"
        if meaning.columns:
            return "COLUMN"
        if meaning.values:
            return "VALUE"
        return "EXTREME" if meaning.extremes else self.word

    @property
    def is_year(self) -> bool:
        return self.number is not None and re.fullmatch(r"1[4-9]\d\d|20\d\d", self.number) is not None

    @property
    def is_quoted(self) -> bool:
        return self.text[:1] in {'"', "“"} or (self.text[:1] == "'" and len(self.text) > 2)

    @property
    def plain(self) -> str:
        """The words without quotes."""
        return self.text[1:-1] if self.is_quoted else self.text


@dataclass(frozen=True, slots=True)
class Phrase:
    """The items of one message."""

    items: tuple[Item, ...]


def form_of(items: Iterable[Item]) -> str:
    """Items as rules see them: names and numbers by their kinds, everything else by its word."""
    return " ".join(item.kind for item in items)


def read_phrase(text: str, names: Names) -> Phrase:
    """Cut a message into items; words that carry nothing are left out."""
    words: list[Item] = []
    known = _known_words(names)
    for found in TOKEN.finditer(text):
        said = found[0]
        if said.casefold() in {"'s", "’s"}:
            continue
        item = _item(said)
        if item.word == "like" and words and words[-1].word in {"i'd", "would", "i"}:
            continue
        if item.number is None and not item.is_quoted and item.word.isalpha():
            meant = _repair(item.word, known)
            if meant != item.word:
                item = replace(item, word=meant, text=meant, slip=said)
        words.append(item)
    joined = _join(words, names)
    named = [table for item in joined for table in item.meaning.tables]
    items = [
        item for item in _join(words, names, named) if item.meaning != NOTHING or item.word not in FILLERS
    ]
    return Phrase(tuple(_settle(items)))


def _item(said: str) -> Item:
    word = said.lower()
    found = _NUMBER.fullmatch(said)
    if found is not None:
        number = float(found[1].replace(",", "")) * _MULTIPLES.get(found[2].lower(), 1)
        return Item(word, said, number=str(int(number)) if number.is_integer() else str(number))
    if word in SMALL_NUMBERS:
        return Item(word, said, number=SMALL_NUMBERS[word])
    return Item(word, said)


def _join(words: Sequence[Item], names: Names, tables: Sequence[str] = ()) -> list[Item]:
    """Put the words of names together, the longest first, as far as the tables that are named have them."""
    items: list[Item] = []
    first = 0
    while first < len(words):
        for last in range(min(first + LONGEST, len(words)), first, -1):
            part = words[first:last]
            meaning = names.phrases.get(_key(part))
            if meaning is None and len(part) == 1 and part[0].text.isupper() and len(part[0].text) == 2:
                meaning = _code(part[0].text, names)
            if len(part) > 1 and meaning and tables and not _is_of(meaning, tables, names):
                meaning = None
            if meaning is not None and (part[0].number is None or len(part) > 1):
                text = " ".join(item.text for item in part)
                slip = (
                    " ".join(item.slip or item.text for item in part)
                    if any(item.slip for item in part)
                    else ""
                )
                items.append(Item(" ".join(item.word for item in part), text, meaning, slip=slip))
                first = last
                break
        else:
            items.append(words[first])
            first += 1
    return items


def _is_of(meaning: Meaning, tables: Sequence[str], names: Names) -> bool:
    return bool(meaning.tables) or any(names.has(table, meaning) for table in tables)


def _key(part: Sequence[Item]) -> str:
    return " ".join(item.plain.lower() if item.is_quoted else item.word for item in part)


def _code(text: str, names: Names) -> Meaning | None:
    """A state by its two capitals, such as TX."""
    values = {value for meaning in names.phrases.values() for value in meaning.values if value[2] == text}
    return Meaning(values=tuple(values)) if values else None


def _settle(items: Sequence[Item]) -> list[Item]:
    """Decide between the readings of words that name a column and a value."""
    settled: list[Item] = []
    for place, item in enumerate(items):
        meaning = item.meaning
        if meaning.columns and meaning.values:
            before = items[place - 1].word if place else ""
            only = replace(meaning, values=()) if before in _MEASURED else replace(meaning, columns=())
            item = replace(item, meaning=only)  # noqa: PLW2901 - the same item, decided
        settled.append(item)
    return settled


def _known_words(names: Names) -> frozenset[str]:
    return frozenset(word for phrase in names.phrases for word in phrase.split(" ") if word.isalpha())


def _repair(word: str, known: frozenset[str]) -> str:
    """The known word of which this is a misspelling, else itself."""
    if len(word) < SHORTEST_REPAIRED or word in known or word in ORDINARY or word in MONTHS:
        return word
    allowed = 1 if len(word) < LONG else 2
    near = [
        (distance, one)
        for one in (*known, *ORDINARY)
        if len(one) > 4
        and one[0] == word[0]
        and abs(len(one) - len(word)) <= allowed
        and one not in {f"{word}s", f"{word}d", f"{word}ed", f"{word}ing"}
        and (distance := OSA.distance(word, one, score_cutoff=allowed)) <= allowed
    ]
    return min(near)[1] if near else word
