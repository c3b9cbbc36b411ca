"""Between System 1 and a domain's reader: the situation as it is told to it, and what it read."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import FlowScore, MessageKind, Source, Understanding
from orchestrator.domain.reader import Heard, Past, Read
from orchestrator.nlu.nlu_context import Situation
from orchestrator.types import Dact


def heard(text: str, situation: Situation) -> Heard:
    """A cleaned message with what a reader may know of its situation."""
    return Heard(
        text=text,
        today=situation.today,
        active=situation.active.dact if situation.active else None,
        values=situation.values,
        asked=situation.asked,
        confirming=situation.confirming,
        completed=tuple(Past(past.spec.dact, past.values, past.outputs) for past in situation.completed),
        own=situation.own,
    )


def as_understanding(
    read: Read, text: str, flows: Mapping[Dact, FlowSpec], situation: Situation
) -> Understanding:
    """A task; or, where it has a value for what the active flow asks, an answer or a correction."""
    spec = flows.get(read.flow)
    intent = spec.intent if spec else None
    if situation.active is not None and situation.active.dact == read.flow and situation.asked in read.slots:
        changes = any(situation.values.get(n, m.value) != m.value for n, m in read.slots.items())
        kind = MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
        return Understanding(
            kind, Source.SYSTEM1, text, intent, slots=read.slots, target=read.flow, assumed=read.assumed
        )
    scores = (FlowScore(read.flow, read.sure),)
    return Understanding(
        MessageKind.TASK, Source.SYSTEM1, text, intent, scores, read.slots, assumed=read.assumed
    )
