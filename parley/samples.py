"""Sample values of slots, with the words that users say for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import islice
from typing import NamedTuple

from orchestrator.dialogue.slots import LIST_TYPES, Valid
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.domain.model import Domain, EntityValue
from orchestrator.types import Json

_MOST_VALUES = 24
_MOST_COUNTED = 20
_DAYS = (1, 3, 4, 5, 6, 7, 10, 11, 12, 13)
_NAMES = ("Sandra Quill", "Blue Harbor", "Orlane")
_TEXTS = ("please call me back", "it rattles at night", "bring the blue folder")
_BOOLEANS = frozenset({"true", "false"})


class Sample(NamedTuple):
    """A slot value. `text`: the user's words. `value`: the expected slot value, or None if unknown."""

    text: str
    value: Json


_BY_NAME = tuple(Sample(name, name) for name in _NAMES)
_OF_TYPE = {
    "boolean": (Sample("yes", True), Sample("no", False)),
    "time": tuple(Sample(clock, clock) for clock in ("09:00", "10:30", "14:00", "15:30")),
    "free_text": tuple(Sample(text, text) for text in _TEXTS),
    **dict.fromkeys(("base", "source", "target", "removal"), _BY_NAME),
}


def list_samples(slot: SlotSpec, domain: Domain, today: date) -> Sequence[Sample]:
    """Return up to `_MOST_VALUES` samples for a slot, or none if neither its type nor the domain provides any."""
    found = _read_samples(slot, domain) if slot.samples else _make_samples(slot, domain, today)
    return tuple(islice(found, _MOST_VALUES))


def _read_samples(slot: SlotSpec, domain: Domain) -> Iterator[Sample]:
    for text in slot.samples:
        judged = domain.slot_types.validate(text, slot)
        is_known = isinstance(judged, Valid) and slot.entity is None
        yield Sample(text, judged.value if isinstance(judged, Valid) and is_known else None)


def _make_samples(slot: SlotSpec, domain: Domain, today: date) -> Iterator[Sample]:
    kind = slot.type.replace(" ", "_")
    entity = domain.entities.get(slot.entity) if slot.entity is not None else None
    if entity is not None:
        yield from (Sample(_name(one), one.canonical) for one in _known_best(entity.values))
    elif slot.values and kind != "money":
        yield from _read_values(slot, is_list=kind in LIST_TYPES)
    elif kind == "date":
        yield from _list_days(today, is_english=domain.config.language.default == "en")
    elif kind == "money":
        currency = next(iter(slot.values), "EUR")
        for amount in _count(slot):
            yield Sample(f"{amount} {currency}", {"amount": amount, "currency": currency})
    elif kind in {"number", "integer", "level"}:
        yield from (Sample(str(number), number) for number in _count(slot))
    elif kind == "group":
        yield from (Sample(name, [name]) for name in _NAMES)
    else:
        yield from _OF_TYPE.get(kind, ())


def _read_values(slot: SlotSpec, *, is_list: bool) -> Iterator[Sample]:
    """Yield the slot's listed values. The text is a synonym, or the value itself if it has no synonyms."""
    if {value.lower() for value in slot.values} <= _BOOLEANS:
        yield from _OF_TYPE["boolean"]
        return
    for value in slot.values:
        said = [text for text, meant in slot.synonyms.items() if meant == value] or [value.replace("_", " ")]
        yield from (Sample(text, [value] if is_list else value) for text in said)


def _list_days(today: date, *, is_english: bool) -> Iterator[Sample]:
    for days in _DAYS:
        day = today + timedelta(days=days)
        yield Sample(f"{day.day} {day:%B}" if is_english else day.isoformat(), day.isoformat())


def _known_best(values: Sequence[EntityValue]) -> list[EntityValue]:
    """Sort entity values by their number of aliases, highest first."""
    return sorted(values, key=lambda one: -len(one.aliases))


def _name(value: EntityValue) -> str:
    return next(iter(value.aliases), value.name)


def _count(slot: SlotSpec) -> Sequence[int]:
    """Return up to three of the lowest numbers in a slot's range, or the quartiles of a wide range."""
    lowest = int(slot.minimum or 1)
    highest = int(slot.maximum if slot.maximum is not None else lowest + 2)
    if highest - lowest <= _MOST_COUNTED:
        return range(lowest, min(lowest + 2, highest) + 1)
    return [lowest + (highest - lowest) * part // 4 for part in (1, 2, 3)]
