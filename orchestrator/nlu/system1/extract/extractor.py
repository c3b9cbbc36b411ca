"""Search for values in a message.

A domain has one extractor. It searches for dates, times, numbers, amounts and codes only if a slot takes them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date
from functools import lru_cache

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.domain.locales import ENGLISH_SEPARATORS, Separators
from orchestrator.domain.model import Entity
from orchestrator.nlu.system1.extract.dates import find_days
from orchestrator.nlu.system1.extract.found import (
    CODE,
    DATE,
    MONEY,
    NAME,
    NUMBER,
    QUOTE,
    TIME,
    Candidate,
    Found,
    places_of,
)
from orchestrator.nlu.system1.extract.gazetteer import LISTED, Gazetteer, add_entities, entity_kind
from orchestrator.nlu.system1.extract.names import (
    find_codes,
    find_names,
    find_patterns,
    find_quotes,
)
from orchestrator.nlu.system1.extract.numbers import (
    UNITS,
    find_money,
    find_numbers,
    read_separators,
)
from orchestrator.nlu.system1.extract.times import find_times
from orchestrator.nlu.text import Utterance, tokenize

_BY_TYPE: dict[str, tuple[str, ...]] = {
    "date": (DATE,),
    "time": (TIME,),
    "datetime": (DATE, TIME),
    "money": (MONEY,),
    "number": (NUMBER,),
    "integer": (NUMBER,),
    "level": (NUMBER,),
    "range": (),
    "dictionary": (),
    "boolean": (),
}
_OPEN = (QUOTE, NAME)
_OPEN_TYPES = frozenset({"base", "group", "source", "target", "removal", "category", "checklist"})
_BOOLEANS = frozenset({"true", "false"})


def value_kind(slot: str) -> str:
    """Return the value kind for the allowed values of the slot named `slot`."""
    return f"{LISTED}{slot}"


CODES = "pattern:"
"""Prefix of value kinds for the domain's patterns."""


def pattern_kind(type_or_slot: str) -> str:
    """Return the value kind for the pattern of a custom slot type or of an exact slot, by name."""
    return f"{CODES}{type_or_slot}"


def is_boolean(slot: SlotSpec) -> bool:
    """Return whether a slot is a yes-or-no slot, by its type or because it only allows true and false."""
    return slot.type == "boolean" or (
        bool(slot.values) and all(value.lower() in _BOOLEANS for value in slot.values)
    )


def kinds_of(slot: SlotSpec) -> tuple[str, ...]:
    """Return the kinds of values for a slot, most specific first.

    An exact slot with a pattern has only the kind of its pattern.
    """
    if slot.pattern and slot.type == "exact":
        return (pattern_kind(slot.name),)
    kinds = _kinds(slot.type, slot.name, slot.entity, slot.values, bool(slot.synonyms))
    return (*kinds, *_OPEN) if slot.open else kinds


@lru_cache(maxsize=4096)
def _kinds(
    type_: str, name: str, entity: str | None, values: tuple[str, ...], synonyms: bool
) -> tuple[str, ...]:
    if entity:
        return (entity_kind(entity),)
    if type_ in _BY_TYPE:
        return (value_kind(name), *_BY_TYPE[type_]) if synonyms or values else _BY_TYPE[type_]
    if values:
        return (value_kind(name),)
    if type_ == "exact":
        return (pattern_kind(name), CODE)
    if type_ == "free_text":
        return (QUOTE,)
    if type_ in _OPEN_TYPES:
        return (value_kind(name), *_OPEN)
    return (value_kind(name), pattern_kind(type_), *_OPEN)


def accepts_names(slot: SlotSpec) -> bool:
    """Return whether the slot takes unlisted names."""
    return NAME in kinds_of(slot)


def kinds_by_slot(slots: Mapping[str, SlotSpec]) -> dict[str, tuple[str, ...]]:
    return {name: kinds_of(slot) for name, slot in slots.items()}


def fits(candidate: Candidate, slot: SlotSpec, kinds: Collection[str]) -> bool:
    """Return whether the slot may take a candidate. `kinds`: the kinds that the slot accepts."""
    return bool(find_takers(candidate, [slot], {slot.name: kinds}))


def find_takers(
    candidate: Candidate, slots: Iterable[SlotSpec], kinds: Mapping[str, Collection[str]]
) -> list[SlotSpec]:
    """Return the slots that may take a candidate. Slots for entities may take any name.

    `kinds`: the accepted kinds by slot name.
    """
    may_be_name, read = candidate.kind == NAME, candidate.readings.keys()
    return [
        slot
        for slot in slots
        if (may_be_name and slot.entity is not None) or not read.isdisjoint(kinds[slot.name])
    ]


# Specificity of kinds. Smaller numbers are more specific.
_RANK = {DATE: 0, TIME: 1, MONEY: 2, QUOTE: 7, NAME: 9, CODE: 6, NUMBER: 8}
_LISTED_RANK = 5
"""Rank of the kinds that `_RANK` doesn't contain: entities, listed values and patterns."""
_OWN_KINDS = frozenset({"value", "pattern"})
"""Prefixes of kinds that belong to a single slot. A span can have several such kinds."""
Find = Callable[[Utterance], list[Found]]
_UNITS: tuple[tuple[str, Find], ...] = ((TIME, find_times), (MONEY, find_money))
"""Extractors for expressions that end a name, in addition to dates."""
_FORMS: tuple[tuple[str, Find], ...] = (
    (CODE, find_codes),
    (NUMBER, find_numbers),
)
_NUMBER_WORDS = {str(value): word for word, value in UNITS.items()}


class Extractor:
    def __init__(
        self,
        flows: Iterable[FlowSpec],
        entities: Mapping[str, Entity],
        common: frozenset[str],
        patterns: Mapping[str, re.Pattern[str]] | None = None,
    ) -> None:
        """Create an extractor for the slots of `flows`.

        `common`: lowercase words in the examples, which do not begin names. `patterns`: patterns for the
        domain's own slot types, by type.
        """
        slots = [slot for flow in flows for slot in flow.slots.values()]
        kinds = {kind for slot in slots for kind in kinds_of(slot)}
        self.gazetteer = Gazetteer()
        self._patterns = {pattern_kind(name): pattern for name, pattern in (patterns or {}).items()}
        self._patterns |= {
            pattern_kind(slot.name): re.compile(slot.pattern) for slot in slots if slot.pattern
        }
        self.common = common
        self._open = any(accepts_names(slot) for slot in slots)
        self._dates = DATE in kinds
        self._units = [find for kind, find in _UNITS if kind in kinds]
        self._forms = [find for kind, find in _FORMS if kind in kinds or (kind == NUMBER and MONEY in kinds)]
        self._latest = lru_cache(maxsize=8)(self._search)
        add_entities(self.gazetteer, entities.values())
        for slot in slots:
            _add_values(self.gazetteer, slot)

    def find(
        self, utterance: Utterance, today: date, separators: Separators = ENGLISH_SEPARATORS
    ) -> list[Candidate]:
        """Find candidates in text order, without overlaps.

        The latest results are cached, because several NLU components process the same message.
        """
        return list(self._latest(utterance.text, today, separators))

    def _search(self, text: str, today: date, separators: Separators) -> list[Candidate]:
        utterance = tokenize(text)
        digits = utterance if separators is ENGLISH_SEPARATORS else read_separators(utterance, separators)
        typed = find_days(utterance, today) if self._dates else []
        for find in self._units:
            typed += find(digits)
        found = self.gazetteer.find(utterance) + typed
        for find in self._forms:
            found += find(digits)
        found += find_patterns(utterance, self._patterns, self.common)
        found += find_names(utterance, self.common, typed)
        if '"' in utterance.text or not utterance.text.isascii() or "'" in utterance.text:
            found += find_quotes(utterance)
        return self._resolve(utterance, found)

    def _resolve(self, utterance: Utterance, found: list[Found]) -> list[Candidate]:
        """Merge results for the same tokens into one candidate, and keep the longest of overlapping candidates."""
        spans: dict[tuple[int, int], Candidate] = {}
        for item in found:
            span = utterance.token_span(item.start, item.end)
            candidate = spans.get(span)
            if candidate is None:
                text = utterance.text[item.start : item.end]
                candidate = spans[span] = Candidate(*span, item.kind, text)
            elif _RANK.get(item.kind, _LISTED_RANK) < _RANK.get(candidate.kind, _LISTED_RANK):
                candidate.kind = item.kind
            candidate.readings.setdefault(item.kind, item.reading)
        for candidate in spans.values():
            candidate.kind = _chief_kind(candidate)
        if len(spans) > 1:
            return self._without_overlaps(_without_chains(list(spans.values())))
        return list(spans.values())

    def _without_overlaps(self, candidates: list[Candidate]) -> list[Candidate]:
        candidates.sort(key=self._belief)
        taken: set[int] = set()
        kept: list[Candidate] = []
        for candidate in candidates:
            if taken.isdisjoint(candidate.places):
                taken.update(candidate.places)
                kept.append(candidate)
        kept.sort(key=lambda candidate: candidate.first)
        return kept

    def _belief(self, candidate: Candidate) -> tuple[int, int, int]:
        unlisted = candidate.kind == NAME and not self._open
        return int(unlisted), candidate.first - candidate.last, _RANK.get(candidate.kind, _LISTED_RANK)


def _chief_kind(candidate: Candidate) -> str:
    """Return the main kind of a candidate. Several lists or patterns are joined, because they are equally specific."""
    form, colon, _name = candidate.kind.partition(":")
    if form not in _OWN_KINDS:
        return candidate.kind
    names = (kind.removeprefix(form + colon) for kind in candidate.readings if kind.startswith(form + colon))
    return form + colon + "|".join(sorted(names))


def _without_chains(candidates: list[Candidate]) -> list[Candidate]:
    """Remove unlisted names that consist of known names: "Oslo Barcelona" is not a place."""
    known = places_of(one for one in candidates if one.kind.startswith("entity:"))
    return [one for one in candidates if one.kind != NAME or not known.issuperset(one.places)]


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
