"""Tells whether a value that a model names comes from the conversation: from what was said, shown or found.

A model may name what nobody said. Such a value is no one's wish, and goes no further.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from orchestrator.dialogue.json_values import same_value
from orchestrator.dialogue.specification import FlowSpec, SlotSpec
from orchestrator.nlu.extract.extractor import Extractor, accepts_names, value_kind
from orchestrator.nlu.extract.gazetteer import entity_kind
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.text import clean, key_of, tokenize
from orchestrator.types import Json


class Grounding:
    """Looks for values in the conversation up to one message, whose `text` is among it."""

    def __init__(self, extractor: Extractor, context: NluContext, text: str) -> None:
        self._extractor = extractor
        self._context = context
        self._texts = [text, *(message.text for message in reversed(context.history.history.messages))]

    def is_founded(self, value: Json, slot: SlotSpec, flow: FlowSpec) -> bool:
        """Say whether somebody has said or displayed a name; what is listed or counted may be meant by any words."""
        if slot.values or not isinstance(value, str) or not accepts_names(slot):
            return True
        if self._belongs_to_another(value, slot, flow):
            return False
        return (
            any(_names(text, value) for text in self._texts)
            or any(same_value(value, known) for known in self._known())
            or any(same_value(value, found) for text in self._texts for found in self._read(text))
        )

    def _belongs_to_another(self, value: str, slot: SlotSpec, flow: FlowSpec) -> bool:
        """Say whether a value is known for another slot of the flow, and not for this one, which has known ones."""
        if slot.entity is None or self._is_listed(value, slot):
            return False
        return any(self._is_listed(value, other) for other in flow.slots.values() if other.name != slot.name)

    def _is_listed(self, value: str, slot: SlotSpec) -> bool:
        kind = value_kind(slot.name) if slot.entity is None else entity_kind(slot.entity)
        gazetteer = self._extractor.gazetteer
        return value in slot.values or gazetteer.is_value(kind, value) or bool(gazetteer.lookup(kind, value))

    def _known(self) -> Iterator[Json]:
        context = self._context
        held: Iterable[Mapping[str, Json]] = (
            context.values,
            *(
                values
                for past in (*context.completed, *context.interrupted)
                for values in (past.values, past.outputs)
            ),
            *(() if context.shown is None else context.shown.rows),
        )
        yield from context.question.candidates
        for values in held:
            yield from values.values()

    def _read(self, text: str) -> Iterator[Json]:
        for candidate in self._extractor.find(tokenize(clean(text)), self._context.today):
            for reading in candidate.readings.values():
                yield from (reading.value, *reading.candidates)


def _names(text: str, value: Json) -> bool:
    """Say whether a text has the words of a value, in their order."""
    words = key_of(str(value))
    return bool(words) and f" {words} " in f" {key_of(text)} "
