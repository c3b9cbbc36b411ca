"""Extractor results: text spans with typed readings.

`slot_assignment` assigns candidates to slots.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from orchestrator.saying import Told
from orchestrator.types import Json


class Reading(NamedTuple):
    """A reading of a span: its value, or several possible `candidates`, or the reason why it is `invalid`."""

    value: Json = None
    candidates: tuple[Json, ...] = ()
    invalid: Told | None = None

    @property
    def values(self) -> tuple[Json, ...]:
        """Return the value and the candidates. The value is None if there are candidates."""
        return self.value, *self.candidates


def reading_of(values: tuple[Json, ...]) -> Reading:
    """Return the reading of a span that has one or more possible values."""
    return Reading(values[0]) if len(values) == 1 else Reading(candidates=values)


class Found(NamedTuple):
    start: int
    end: int
    kind: str
    reading: Reading


@dataclass(slots=True)
class Candidate:
    """A span of tokens (`first` to `last`, exclusive) with its readings by kind. `kind`: the main kind."""

    first: int
    last: int
    kind: str
    text: str
    readings: dict[str, Reading] = field(default_factory=dict[str, Reading])

    @property
    def places(self) -> range:
        return range(self.first, self.last)


def places_of(candidates: Iterable[Candidate]) -> set[int]:
    """Return the indexes of all tokens in `candidates`."""
    return {place for candidate in candidates for place in candidate.places}


DATE = "date"
TIME = "time"
MONEY = "money"
NUMBER = "number"
CODE = "code"
NAME = "name"
QUOTE = "quote"
UNLISTED = frozenset({NAME, QUOTE})
"""The kinds of spans that can be any text."""
