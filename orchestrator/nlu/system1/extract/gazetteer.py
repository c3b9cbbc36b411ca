"""A domain's known values: entities with their names and aliases, and listed slot values with their synonyms.

Fuzzy search is slow, so it is used only for expected names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from rapidfuzz import fuzz, process

from orchestrator.domain.model import Entity, EntityValue
from orchestrator.nlu.system1.extract.found import Found, Reading, reading_of
from orchestrator.nlu.text import Utterance, key_of
from orchestrator.types import Json

FUZZY_LIMIT = 86
FUZZY_LIMIT_MAIN = 82
"""Minimum similarity of a main value, from 0 to 100, if the domain marks main values."""
FUZZY_SURE = 90
"""Minimum similarity of other values that are used without asking the user, from 0 to 100."""
LONGEST_CODE = 4
LISTED = "value:"
"""Prefix of kinds for a slot's allowed values."""


class Gazetteer:
    """An index of values by kind and name. Add all names before searching."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[str, ...]] = {}  # by name
        self._longest: dict[str, int] = {}
        self._by_kind: dict[str, dict[str, tuple[Json, ...]]] = {}
        self._canonical: dict[str, set[Json]] = {}
        self._codes: set[str] = set()
        self._main: dict[str, dict[str, tuple[Json, ...]]] = {}
        self._nearest = lru_cache(maxsize=2048)(self._search)

    def add(self, kind: str, name: str, *values: Json) -> None:
        """Add `name` for values of a kind. Several values make the name ambiguous."""
        key = key_of(name)
        if key:
            self.add_key(kind, key, *values)

    def add_key(self, kind: str, key: str, *values: Json) -> None:
        """Add a name that is already normalized by `key_of`."""
        known = self._by_kind.setdefault(kind, {})
        merged = tuple(dict.fromkeys((*known.get(key, ()), *values)))
        known[key] = merged
        self._canonical.setdefault(kind, set()).update(values)
        kinds = self._kinds.get(key, ())
        if kind not in kinds:
            self._kinds[key] = (*kinds, kind)
        if len(key) <= LONGEST_CODE and all(is_code(value) and key == value.lower() for value in merged):
            self._codes.add(key)
        else:
            self._codes.discard(key)
        first, count = key.partition(" ")[0], key.count(" ") + 1
        self._longest[first] = max(self._longest.get(first, 0), count)

    def find(self, utterance: Utterance) -> list[Found]:
        """Find the longest known names from left to right, with one result per kind."""
        words = utterance.words
        kinds_of, found, until = self._kinds, list[Found](), 0
        for index, reach in enumerate(map(self._longest.get, words)):
            if reach is None or index < until:
                continue
            for last in range(min(index + reach, len(words)), index, -1):
                name = " ".join(words[index:last]) if last > index + 1 else words[index]
                kinds = kinds_of.get(name)
                if kinds is not None:
                    start, end = utterance.starts[index], utterance.ends[last - 1]
                    is_short = last == index + 1 and words[index] in self._codes
                    if is_short and not utterance.text[start:end].isupper():
                        break  # "let" and "yes" are words; LET and YES are airports
                    found += [
                        Found(start, end, kind, reading_of(self._by_kind[kind][name])) for kind in kinds
                    ]
                    until = last
                    break
        return found

    def lookup(self, kind: str, text: str) -> tuple[Json, ...]:
        """Return the values with exactly this name, ignoring case and accents."""
        return self._by_kind.get(kind, {}).get(key_of(text), ())

    def mark_main(self, kind: str, key: str, *values: Json) -> None:
        """Record the main values of the name `key`: those that users most often mean when they misspell it."""
        self._main.setdefault(kind, {})[key] = values

    def repair(self, kind: str, text: str) -> Reading | None:
        """Return a reading of a misspelled name, or None if the text is short or no name is similar enough.

        If a domain marks its main values, other values must be very similar: "Atlantis" is probably not a
        misspelling of the little-known place Atlantic.
        """
        key = key_of(text)
        if len(key) < 4:
            return None
        values, sure = self._nearest(kind, key)
        if not values:
            return None
        return reading_of(values) if sure else Reading(candidates=values)

    def is_main_name(self, word: str) -> bool:
        """Return whether a normalized word is a main name, or a name of a kind without main names."""
        return any(word in (self._main.get(kind) or names) for kind, names in self._by_kind.items())

    def is_little_known(self, kind: str, value: Json) -> bool:
        """Return whether this kind has main values and the value is not one of them."""
        main = self._main.get(kind)
        return main is not None and (value,) not in main.values()

    def is_value(self, kind: str, value: Json) -> bool:
        """Return whether `value` is a canonical value of this kind, not only a name of a value."""
        return isinstance(value, str | int | float) and value in self._canonical.get(kind, ())

    def names(self, kind: str) -> Mapping[str, tuple[Json, ...]]:
        return self._by_kind.get(kind, {})

    def _search(self, kind: str, key: str) -> tuple[tuple[Json, ...], bool]:
        """Return the values of the most similar name, and whether they can be used without asking the user."""
        known, main = self._by_kind.get(kind), self._main.get(kind)
        if not known or len(key) > 80:
            return (), False
        if main:
            best = process.extractOne(key, main.keys(), scorer=fuzz.ratio, score_cutoff=FUZZY_LIMIT_MAIN)
            if best:
                return main[best[0]], True
        best = process.extractOne(key, known.keys(), scorer=fuzz.ratio, score_cutoff=FUZZY_LIMIT)
        return (known[best[0]], not main or best[1] >= FUZZY_SURE) if best else ((), False)


def choose_nearest(key: str, keys: Iterable[str]) -> str | None:
    """Return the normalized name most similar to a misspelled name, or None if no name is similar enough."""
    best = process.extractOne(key, list(keys), scorer=fuzz.ratio, score_cutoff=FUZZY_LIMIT)
    return None if best is None else best[0]


def is_code(value: Json) -> bool:
    """Return whether a value is a short code, such as LHR. In messages, codes match only in capitals."""
    return isinstance(value, str) and len(value) <= LONGEST_CODE and value.isalpha() and value.isupper()


def add_entities(gazetteer: Gazetteer, entities: Iterable[Entity]) -> None:
    """Add the domain's entities: values, names and aliases, and main values.

    If several values share a name and exactly one value is marked `main` in its metadata, the name refers to
    this value.
    """
    for entity in entities:
        kind = entity_kind(entity.name)
        shared: dict[str, list[EntityValue]] = {}
        for value in entity.values:
            for key in {key_of(name) for name in (value.canonical, value.name, *value.aliases)}:
                shared.setdefault(key, []).append(value)
        shared.pop("", None)
        for key, values in shared.items():
            mains = {value.canonical for value in values if value.metadata.get("main")}
            chosen = mains if len(mains) == 1 else {value.canonical for value in values}
            gazetteer.add_key(kind, key, *sorted(chosen))
            if len(mains) == 1:
                gazetteer.mark_main(kind, key, *mains)


def entity_kind(entity: str) -> str:
    return f"entity:{entity}"
