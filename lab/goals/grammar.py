"""User phrases by act, as patterns with alternatives and fields.

A hash of a pattern decides whether the pattern is held out, so the split is stable. Held-out patterns are only for
measurements: developers don't read them. The blind phrases, in separate files, were written after the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random

import yaml

PHRASES = Path(__file__).parent / "phrases"
_INNERMOST = re.compile(r"\(([^()]*)\)")
_FIELD = re.compile(r"\{(\w+)\}")


class Half(StrEnum):
    SEEN = "seen"
    HELD_OUT = "held-out"
    BOTH = "both"
    BLIND = "blind"


@dataclass(frozen=True, slots=True)
class Said:
    text: str
    fields: frozenset[str]


class Grammar:
    """The phrases of a world, plus the phrases that all worlds share."""

    def __init__(self, name: str, half: Half) -> None:
        self.acts = _load("common") | _load(name)
        self.half = half
        if half is Half.BLIND:
            self.acts |= _load("blind/common") | _load(f"blind/{name}")

    def knows(self, act: str) -> bool:
        return act in self.acts

    def say(self, act: str, values: Mapping[str, str], chance: Random, *, typos: bool = False) -> Said:
        """Return a sentence for an act, from a pattern whose fields are all in `values`.

        If no fitting pattern is in this half, a pattern from the other half is used. `typos`: True to misspell a word.
        """
        fitting = [one for one in self.acts[act] if fields_of(one) <= values.keys()]
        own = [one for one in fitting if self._holds(one)]
        pattern = chance.choice(own or fitting)
        wording = _spoil(expand(pattern, chance), chance) if typos else expand(pattern, chance)
        text = _FIELD.sub(lambda field: values[field[1]], wording)
        return Said(text, fields_of(wording))

    def count(self) -> int:
        """Return the number of possible sentences in this half, not counting different field values."""
        patterns = [one for act in self.acts.values() for one in act]
        return sum(_count(one) for one in patterns if self._holds(one))

    def _holds(self, pattern: str) -> bool:
        return self.half in {Half.BOTH, Half.BLIND} or half_of(pattern) is self.half


@cache
def _load(name: str) -> dict[str, tuple[str, ...]]:
    path = PHRASES / f"{name}.yaml"
    stock = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader) if path.exists() else {}
    return {act: tuple(patterns) for act, patterns in stock.items()}


@cache
def half_of(pattern: str) -> Half:
    digest = blake2b(pattern.encode(), digest_size=1).digest()[0]
    return Half.HELD_OUT if digest % 2 else Half.SEEN


@cache
def fields_of(pattern: str) -> frozenset[str]:
    return frozenset(_FIELD.findall(pattern))


def expand(pattern: str, chance: Random) -> str:
    """Replace each group in a pattern with one of its alternatives, starting with the innermost groups."""
    text, found = pattern, 1
    while found:
        text, found = _INNERMOST.subn(lambda group: chance.choice(group[1].split("|")), text, count=1)
    return " ".join(text.split()) if not text.startswith((" ", ",")) else text


def _count(pattern: str) -> int:
    inner = _INNERMOST.search(pattern)
    if inner is None:
        return 1
    before, after = pattern[: inner.start()], pattern[inner.end() :]
    return sum(_count(before + one + after) for one in inner[1].split("|"))


def _spoil(wording: str, chance: Random) -> str:
    """Misspell a random word of more than four letters that isn't a field."""
    words = wording.split(" ")
    long = [place for place, word in enumerate(words) if len(word) > 4 and word.isalpha()]
    if not long:
        return wording
    place = chance.choice(long)
    word = words[place]
    at = chance.randrange(1, len(word) - 1)
    swapped = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    words[place] = chance.choice([swapped, word[:at] + word[at + 1 :]])
    return " ".join(words)
