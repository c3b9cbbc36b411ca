"""Which kinds of span may fill which slot."""

from __future__ import annotations

from functools import lru_cache

from orchestrator.dialogue.specification import SlotSpec
from orchestrator.nlu.extract.found import CODE, DATE, MONEY, NAME, NUMBER, PAIRS, QUOTE, RANGE, TIME
from orchestrator.nlu.extract.gazetteer import entity_kind

_BY_TYPE: dict[str, tuple[str, ...]] = {
    "date": (DATE,),
    "time": (TIME,),
    "datetime": (DATE, TIME),
    "money": (MONEY,),
    "number": (NUMBER,),
    "integer": (NUMBER,),
    "level": (NUMBER,),
    "range": (RANGE,),
    "dictionary": (PAIRS,),
    "boolean": (),
}
_OPEN = (QUOTE, NAME)
LISTS = frozenset({"group", "checklist"})
_OPEN_TYPES = frozenset({"base", "group", "source", "target", "removal", "category", "checklist"})
_BOOLEANS = frozenset({"true", "false"})


def type_name(slot: SlotSpec) -> str:
    """The slot's type in one spelling ("free text" and "free_text" are the same)."""
    return slot.type.replace(" ", "_").lower()


def value_kind(slot: str) -> str:
    """The kind of span that names one of a slot's own allowed values."""
    return f"value:{slot}"


def pattern_kind(type_or_slot: str) -> str:
    """The kind of span that has the form of a domain's own slot type, or of one exact slot."""
    return f"pattern:{type_or_slot}"


def is_boolean(slot: SlotSpec) -> bool:
    """A yes-or-no slot: of that type, or with no allowed values but true and false."""
    return type_name(slot) == "boolean" or (
        bool(slot.values) and all(value.lower() in _BOOLEANS for value in slot.values)
    )


def is_free_text(slot: SlotSpec) -> bool:
    return type_name(slot) == "free_text"


def kinds_of(slot: SlotSpec) -> tuple[str, ...]:
    """The kinds that may fill a slot, the most telling first. An exact form admits nothing else."""
    if slot.pattern and type_name(slot) == "exact":
        return (pattern_kind(slot.name),)
    kinds = _kinds(type_name(slot), slot.name, slot.entity, slot.values, bool(slot.synonyms))
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
    """Whether a name that no list knows may be this slot's value."""
    return NAME in kinds_of(slot)
