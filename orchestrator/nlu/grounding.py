"""Check whether values from a model occur in the conversation, because models can invent values."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.dialogue.understanding import Mention
from orchestrator.memory.tokenizer import STOP_WORDS
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.system1.extract.extractor import (
    Extractor,
    accepts_names,
    find_takers,
    fits,
    kinds_by_slot,
    kinds_of,
    value_kind,
)
from orchestrator.nlu.system1.extract.found import (
    DATE,
    NUMBER,
    TIME,
    UNLISTED,
    Candidate,
    Reading,
)
from orchestrator.nlu.system1.extract.gazetteer import entity_kind
from orchestrator.nlu.system1.extract.numbers import find_numbers, is_pronoun
from orchestrator.nlu.system1.slot_assignment import is_negated, read_as
from orchestrator.nlu.text import Utterance, clean, key_of, tokenize, word_set
from orchestrator.types import Json, same_value

_EXACT = frozenset({DATE, TIME, NUMBER})
_CLOCK = re.compile(r"(\d\d?):(\d\d)")
_COMPARING = word_set("more extra additional further other fewer less")
"""Words that make a number relative, as in “two more rooms”."""


class Grounding:
    """A check of values against the conversation, including the current message `text`."""

    def __init__(self, extractor: Extractor, context: NluContext, text: str) -> None:
        self._extractor = extractor
        self._context = context
        messages = context.history.history.messages
        self._said = [text, *(one.text for one in reversed(messages) if one.role == "user")]
        self._told = [one.text for one in reversed(messages) if one.role != "user"]

    def is_founded(self, value: Json, slot: SlotSpec, flow: FlowSpec) -> bool:
        """Return whether a name, day, time or number occurs in the conversation or in the session's values.

        Return True for other types and for slots with listed values, because any words can refer to them, and
        for days, times and numbers if the message has numbers, but none that can be parsed as the slot's type.
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
        told = [text for text in self._told if _names(text, value) or self._tells(text, value, kinds)]
        takes_over = is_name and bool(slot.same_as)
        # The user has probably not adopted a name that was displayed only once and not in the last reply.
        is_told = bool(told) and (not takes_over or len(told) > 1 or told[0] is self._told[0])
        return (
            any(same_value(value, known) for known in self._known())
            or is_told
            or not (is_name or self._can_be_judged(kinds))
        )

    def is_contradicted(self, value: Json, slot: SlotSpec, flow: FlowSpec) -> bool:
        """Return whether the user gave another value for `slot`, or gave this number for another slot.

        “Notes about travel” contradicts the topic home, and “three rooms for five days” contradicts five rooms.
        """
        number = _number_of(value)
        if number is None and slot.values:
            return self._names_another(value, slot, flow)
        if (
            number is None
            or not _takes_numbers(slot)
            or same_value(self._context.values.get(slot.name), value)
        ):
            return False
        for place, text in enumerate(self._said):
            counted = [(count, names) for _, count, names in self._counted(tokenize(clean(text)), flow)]
            own = [one for one, names in counted if slot.name in names]
            if own and (place == 0 or number in own):
                return number not in {*own, sum(one for one, _ in counted)}
            if any(one == number and not names for one, names in counted):
                return False
            if any(one == number for one, _ in counted):
                return True
        return False

    def _names_another(self, value: Json, slot: SlotSpec, flow: FlowSpec) -> bool:
        """Return whether the message has a value that only this slot takes, but not `value`."""
        utterance, kinds = tokenize(clean(self._said[0])), kinds_by_slot(flow.slots)
        named: list[Json] = []
        for candidate in self._find(utterance):
            takers = find_takers(candidate, flow.slots.values(), kinds)
            reading = candidate.readings.get(value_kind(slot.name))
            if takers == [slot] and reading is not None and not is_negated(utterance, candidate):
                named += reading.values
        return bool(named) and not any(same_value(value, one) for one in named)

    def read_again(
        self, slot: SlotSpec, flow: FlowSpec, open_: Collection[str], taken: list[Json]
    ) -> Mention | None:
        """Return the only value in the message that fits `slot` but no other slot in `open_`.

        Return None if there isn't exactly one. `taken`: the message's values for other slots. Unlisted names
        and quotes are ignored.
        """
        utterance = tokenize(clean(self._said[0]))
        counted = {one.first: names for one, _, names in self._counted(utterance, flow)}
        fitting: list[Mention] = []
        for candidate in self._find(utterance):
            listed = {kind: one for kind, one in candidate.readings.items() if kind not in UNLISTED}
            known = replace(candidate, readings=listed)
            is_taken = any(
                _alike(value, one, kind)
                for kind, reading in known.readings.items()
                for one in reading.values
                for value in taken
            )
            if is_taken or is_negated(utterance, known) or is_pronoun(utterance, known.first, known.last):
                continue
            names = counted.get(known.first) or {
                name for name in open_ if fits(known, flow.slots[name], kinds_of(flow.slots[name]))
            }
            reading = next((one for kind in kinds_of(slot) if (one := known.readings.get(kind))), None)
            if slot.name in names and reading is not None:
                fitting.append(read_as(reading, known.text) if len(names) == 1 else Mention())
        return fitting[0] if len(fitting) == 1 and not fitting[0].is_open else None

    def _counted(
        self, utterance: Utterance, flow: FlowSpec
    ) -> Iterator[tuple[Candidate, float, Collection[str]]]:
        """Yield each number in a text: its candidate, its value, and the slots that the words after it indicate."""
        slots = [one for one in flow.slots.values() if _takes_numbers(one)]
        for candidate in self._find(utterance):
            values = (_number_of(reading.value) for reading in candidate.readings.values())
            number = next((value for value in values if value is not None), None)
            if number is None or is_pronoun(utterance, candidate.first, candidate.last):
                continue
            after = utterance.words[candidate.last : candidate.last + 2]
            if after and after[0] in STOP_WORDS | _COMPARING:
                after = []
            yield candidate, number, _find_counted(after, slots)

    def refers(self, value: Json, slot: SlotSpec | None) -> bool:
        """Return whether a name comes from the session, such as a displayed row, rather than from the message.

        Return False if `slot` is None or doesn't accept names.
        """
        if slot is None or not accepts_names(slot) or self._tells(self._said[0], value, kinds_of(slot)):
            return False
        known = any(same_value(value, one) for one in self._known())
        return known and not _names(self._said[0], value)

    def _is_handed_on(self, value: Json, slot: SlotSpec) -> bool:
        """Return whether an earlier task has the value under a name in the slot's `same_as`."""
        return any(
            same_value(value, known) and not {name, f"{past.spec.dact}.{name}"}.isdisjoint(slot.same_as)
            for past in (*self._context.completed, *self._context.interrupted)
            for held in (past.values, past.outputs)
            for name, known in held.items()
        )

    def _is_said(self, value: Json, kinds: Collection[str]) -> bool:
        """Return whether the user has said a value in a form that the slot accepts."""
        if any(self._tells(text, value, kinds) for text in self._said):
            return True
        is_other = any(
            kind in _EXACT and kind not in kinds and str(reading.value) == value
            for kind, reading in self._read(str(value))
        )
        return not is_other and any(_names(text, value) for text in self._said)

    def _can_be_judged(self, kinds: Collection[str]) -> bool:
        """Return whether the message has a value of the given kinds, or no number at all.

        In other messages, a number can be a value in a form that the extractor can't parse.
        """
        text = self._said[0]
        has_one = any(kind in kinds for kind, _ in self._read(text))
        return has_one or not (any(map(str.isdigit, text)) or find_numbers(tokenize(text)))

    def _tells(self, text: str, value: Json, kinds: Collection[str]) -> bool:
        return any(
            kind in kinds and any(_alike(value, one, kind) for one in reading.values)
            for kind, reading in self._read(text)
        )

    def _belongs_to_another(self, value: str, slot: SlotSpec, flow: FlowSpec) -> bool:
        """Return whether a value is listed for another slot of the flow but not for this slot."""
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
        for values in (context.values, *past, *(shown.rows if shown is not None else ())):
            yield from values.values()

    def _read(self, text: str) -> Iterator[tuple[str, Reading]]:
        for candidate in self._find(tokenize(clean(text))):
            yield from candidate.readings.items()

    def _find(self, utterance: Utterance) -> list[Candidate]:
        return self._extractor.find(utterance, self._context.today, self._context.separators)


def _find_counted(after: Sequence[str], slots: Sequence[SlotSpec]) -> Collection[str]:
    """Return the slots for a counted noun, by slot name or unique description (“length of stay in days”).

    `after`: the words after the number.
    """
    for place, word in enumerate(after):
        things = word if word.endswith("s") else f"{word}s"
        if named := {slot.name for slot in slots if things in slot.name.split("_")}:
            return named
        described = {slot.name for slot in slots if things in tokenize(slot.description.lower()).words}
        if len(described) == 1 and place == 0:
            return described
    return ()


def _takes_numbers(slot: SlotSpec) -> bool:
    listed = bool(slot.values) and all(map(str.isdecimal, slot.values))
    return listed or (not slot.values and NUMBER in kinds_of(slot))


def _number_of(value: Json) -> float | None:
    if isinstance(value, str) and value.isdecimal():
        return float(value)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _names(text: str, value: Json) -> bool:
    words = key_of(str(value))
    return bool(words) and f" {words} " in f" {key_of(text)} "


def _alike(value: Json, read: Json, kind: str) -> bool:
    """Return whether a value equals a parsed value. Times match regardless of a.m. or p.m."""
    if kind == TIME and (said := _CLOCK.fullmatch(str(value))) and (other := _CLOCK.fullmatch(str(read))):
        return said[2] == other[2] and int(said[1]) % 12 == int(other[1]) % 12
    return same_value(value, read)
