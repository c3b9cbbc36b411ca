"""Tells whether a value that a model names comes from the conversation: from what was said, shown or found.

A model may name what nobody said. Such a value is no one's wish, and goes no further.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.nlu.extract.extractor import Extractor, accepts_names, kinds_of, value_kind
from orchestrator.nlu.extract.found import DATE, NUMBER, TIME, Reading
from orchestrator.nlu.extract.gazetteer import entity_kind
from orchestrator.nlu.extract.numbers import find_numbers
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.text import clean, key_of, tokenize
from orchestrator.types import Json, same_value

_EXACT = frozenset({DATE, TIME, NUMBER})


class Grounding:
    """Looks for values in the conversation up to one message, whose `text` is among it."""

    def __init__(self, extractor: Extractor, context: NluContext, text: str) -> None:
        self._extractor = extractor
        self._context = context
        messages = context.history.history.messages
        self._said = [text, *(one.text for one in reversed(messages) if one.role == "user")]
        self._told = [one.text for one in reversed(messages) if one.role != "user"]

    def is_founded(self, value: Json, slot: SlotSpec, flow: FlowSpec) -> bool:
        """Say whether somebody has said or displayed a name, a day, a time or a number.

        What is listed may be meant by any words. One of the rows that were displayed is called as it was there.
        """
        kinds, is_name = kinds_of(slot), accepts_names(slot)
        if slot.values or not (is_name or _EXACT.intersection(kinds)):
            return True
        if self._is_handed_on(value, slot):
            return True
        if is_name and isinstance(value, str) and self._belongs_to_another(value, slot, flow):
            return False
        if self._is_said(value, kinds):
            return True
        shown = self._context.shown
        if is_name and shown is not None and shown.rows and shown.key == slot.name:
            return any(same_value(value, row.get(shown.key)) for row in shown.rows)
        return (
            any(same_value(value, known) for known in self._known())
            or any(_names(text, value) or self._tells(text, value, kinds) for text in self._told)
            or not (is_name or self._can_be_judged(kinds))
        )

    def refers(self, value: Json, slot: SlotSpec | None) -> bool:
        """Say whether a name comes from an earlier task or a displayed row, and not from the message itself."""
        if slot is None or not accepts_names(slot) or self._tells(self._said[0], value, kinds_of(slot)):
            return False
        known = any(same_value(value, one) for one in self._known())
        return known and not _names(self._said[0], value)

    def _is_handed_on(self, value: Json, slot: SlotSpec) -> bool:
        """Say whether an earlier task has a value under a name that is declared to mean the same."""
        return any(
            same_value(value, known) and not {name, f"{past.spec.dact}.{name}"}.isdisjoint(slot.same_as)
            for past in (*self._context.completed, *self._context.interrupted)
            for held in (past.values, past.outputs)
            for name, known in held.items()
        )

    def _is_said(self, value: Json, kinds: Collection[str]) -> bool:
        """Say whether the user has named a value, as something that the slot takes."""
        if any(self._tells(text, value, kinds) for text in self._said):
            return True
        is_other = any(
            kind in _EXACT and kind not in kinds and str(reading.value) == value
            for kind, reading in self._read(str(value))
        )
        return not is_other and any(_names(text, value) for text in self._said)

    def _can_be_judged(self, kinds: Collection[str]) -> bool:
        """Say whether the message has such a value, or no number at all: "at seven" may be a time or none."""
        text = self._said[0]
        has_one = any(kind in kinds for kind, _ in self._read(text))
        return has_one or not (any(map(str.isdigit, text)) or find_numbers(tokenize(text)))

    def _tells(self, text: str, value: Json, kinds: Collection[str]) -> bool:
        return any(
            kind in kinds and any(_alike(value, one, kind) for one in (reading.value, *reading.candidates))
            for kind, reading in self._read(text)
        )

    def _belongs_to_another(self, value: str, slot: SlotSpec, flow: FlowSpec) -> bool:
        """Say whether a value is known for another slot of the flow, and not for this one."""
        others = [other for other in flow.slots.values() if other.name != slot.name]
        if slot.entity is None:
            return any(value in other.values for other in others)
        return not self._is_listed(value, slot) and any(self._is_listed(value, other) for other in others)

    def _is_listed(self, value: str, slot: SlotSpec) -> bool:
        kind = value_kind(slot.name) if slot.entity is None else entity_kind(slot.entity)
        gazetteer = self._extractor.gazetteer
        return value in slot.values or gazetteer.is_value(kind, value) or bool(gazetteer.lookup(kind, value))

    def _known(self) -> Iterator[Json]:
        context, shown = self._context, self._context.shown
        past = [
            one for flow in (*context.completed, *context.interrupted) for one in (flow.values, flow.outputs)
        ]
        yield from context.question.candidates
        for values in (context.values, *past, *(shown.rows if shown is not None else ())):
            yield from values.values()

    def _read(self, text: str) -> Iterator[tuple[str, Reading]]:
        for candidate in self._extractor.find(tokenize(clean(text)), self._context.today):
            yield from candidate.readings.items()


def _names(text: str, value: Json) -> bool:
    """Say whether a text has the words of a value, in their order."""
    words = key_of(str(value))
    return bool(words) and f" {words} " in f" {key_of(text)} "


def _alike(value: Json, read: Json, kind: str) -> bool:
    """Say whether a value is what was read; "half past seven" may be either of two times."""
    if kind == TIME and isinstance(value, str) and isinstance(read, str) and ":" in value and ":" in read:
        (hour, minute), (other, others_minute) = value.split(":", 1), read.split(":", 1)
        return minute == others_minute and int(hour) % 12 == int(other) % 12
    return same_value(value, read)
