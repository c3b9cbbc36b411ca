"""All typed extractors over one message, and which of their overlapping finds to believe.

Made once from the domain; runs only the extractors whose kinds some slot takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.domain.model import Entity
from orchestrator.nlu.extract.dates import find_dates
from orchestrator.nlu.extract.found import (
    CODE,
    DATE,
    MONEY,
    NAME,
    NUMBER,
    PAIRS,
    QUOTE,
    RANGE,
    TIME,
    Candidate,
    Found,
)
from orchestrator.nlu.extract.gazetteer import Gazetteer, add_entities
from orchestrator.nlu.extract.names import find_codes, find_names, find_pairs, find_pattern, find_quotes
from orchestrator.nlu.extract.numbers import UNITS, find_money, find_numbers, find_ranges
from orchestrator.nlu.extract.span_types import (
    accepts_names,
    is_boolean,
    kinds_of,
    pattern_kind,
    value_kind,
)
from orchestrator.nlu.extract.times import find_times
from orchestrator.nlu.text import Utterance

_RANK = {DATE: 0, TIME: 1, MONEY: 2, RANGE: 3, PAIRS: 4, QUOTE: 7, NAME: 9, CODE: 6, NUMBER: 8}
_LISTED_RANK = 5
"""Kinds that no extractor shares: entities, values, patterns."""
_NUMBER_WORDS = {str(value): word for word, value in UNITS.items()}


class Extractor:
    """Finds the candidates of a message for the slots of a domain."""

    def __init__(
        self,
        flows: Iterable[FlowSpec],
        entities: Mapping[str, Entity],
        common: frozenset[str],
        patterns: Mapping[str, re.Pattern[str]] | None = None,
    ) -> None:
        """`common`: words written in small letters in the examples; they do not begin names.

        `patterns`: the forms of the domain's own slot types, by type.
        """
        slots = [slot for flow in flows for slot in flow.slots.values()]
        kinds = {kind for slot in slots for kind in kinds_of(slot)}
        self.gazetteer = Gazetteer()
        self._patterns = {pattern_kind(name): pattern for name, pattern in (patterns or {}).items()}
        self._patterns |= {
            pattern_kind(slot.name): re.compile(slot.pattern) for slot in slots if slot.pattern
        }
        self._common = common
        self._open = any(accepts_names(slot) for slot in slots)
        self._dates, self._times = DATE in kinds, TIME in kinds
        self._money, self._ranges = MONEY in kinds, RANGE in kinds
        self._codes, self._pairs = CODE in kinds, PAIRS in kinds
        self._numbers = NUMBER in kinds or self._money
        add_entities(self.gazetteer, entities.values())
        for slot in slots:
            _add_values(self.gazetteer, slot)

    def find(self, utterance: Utterance, today: date) -> list[Candidate]:
        """Find candidates in the order of the text; they do not overlap."""
        typed: list[Found] = []
        if self._dates:
            typed += find_dates(utterance, today)
        if self._times:
            typed += find_times(utterance)
        if self._money:
            typed += find_money(utterance)
        found = self.gazetteer.find(utterance) + typed
        if self._ranges:
            found += find_ranges(utterance)
        if self._codes:
            found += find_codes(utterance)
        if self._pairs:
            found += find_pairs(utterance)
        if self._numbers:
            found += find_numbers(utterance)
        for kind, pattern in self._patterns.items():
            found += find_pattern(utterance, kind, pattern, self._common)
        found += find_names(utterance, self._common, typed)
        if '"' in utterance.text or not utterance.text.isascii() or "'" in utterance.text:
            found += find_quotes(utterance)
        return self._settle(utterance, found)

    def _settle(self, utterance: Utterance, found: list[Found]) -> list[Candidate]:
        """Keep the longest of overlapping finds; finds of the same tokens become readings of one."""
        spans: dict[tuple[int, int], Candidate] = {}
        for item in found:
            span = utterance.token_span(item.start, item.end)
            candidate = spans.get(span)
            if candidate is None:
                text = utterance.text[item.start : item.end]
                candidate = spans[span] = Candidate(*span, item.kind, text)
            elif rank(item.kind) < rank(candidate.kind):
                candidate.kind = item.kind
            candidate.readings.setdefault(item.kind, item.reading)
        if len(spans) > 1:
            return self._without_overlaps(_without_chains(list(spans.values())))
        return list(spans.values())

    def _without_overlaps(self, candidates: list[Candidate]) -> list[Candidate]:
        candidates.sort(key=self._belief)
        taken: set[int] = set()
        kept: list[Candidate] = []
        for candidate in candidates:
            tokens = range(candidate.first, candidate.last)
            if taken.isdisjoint(tokens):
                taken.update(tokens)
                kept.append(candidate)
        kept.sort(key=_first)
        return kept

    def _belief(self, candidate: Candidate) -> tuple[int, int, int]:
        unlisted = candidate.kind == NAME and not self._open
        return int(unlisted), candidate.first - candidate.last, rank(candidate.kind)


def rank(kind: str) -> int:
    """How telling a kind is; smaller is more."""
    return _RANK.get(kind, _LISTED_RANK)


def _without_chains(candidates: list[Candidate]) -> list[Candidate]:
    """Drop names that are only known ones side by side: "Oslo Barcelona" is no place."""
    known = {
        place
        for candidate in candidates
        if candidate.kind.startswith("entity:")
        for place in range(candidate.first, candidate.last)
    }
    if not known:
        return candidates
    return [
        candidate
        for candidate in candidates
        if candidate.kind != NAME or not known.issuperset(range(candidate.first, candidate.last))
    ]


def _first(candidate: Candidate) -> int:
    return candidate.first


def _add_values(gazetteer: Gazetteer, slot: SlotSpec) -> None:
    kind = value_kind(slot.name)
    if not is_boolean(slot):
        for value in slot.values:
            gazetteer.add(kind, value, value)
            gazetteer.add(kind, value.replace("_", " "), value)
            if value in _NUMBER_WORDS:
                gazetteer.add(kind, _NUMBER_WORDS[value], value)
    for said, meant in slot.synonyms.items():
        gazetteer.add(kind, said, meant)
