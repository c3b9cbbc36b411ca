"""Asks a domain's own reader: shows it the message in its context, and takes what it read."""

from collections.abc import Mapping

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import FlowScore, MessageKind, Source, Understanding
from orchestrator.domain.reader import Heard, Past, Read
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.types import Dact


def describe_message(text: str, context: NluContext) -> Heard:
    """Put a cleaned message together with what a reader may know of its context."""
    return Heard(
        text=text,
        today=context.today,
        active=context.active.dact if context.active else None,
        values=context.values,
        asked=context.question.slot,
        confirming=context.question.confirming,
        completed=tuple(Past(past.spec.dact, past.values, past.outputs) for past in context.completed),
        own=context.own,
    )


def as_understanding(
    read: Read, text: str, flows: Mapping[Dact, FlowSpec], context: NluContext
) -> Understanding:
    """Take it as a task; or, where it has a value for what the active flow asks, an answer or a correction."""
    spec = flows.get(read.flow)
    intent = spec.intent if spec else None
    active = context.active
    if active is not None and active.dact == read.flow and context.question.slot in read.slots:
        changes = any(context.values.get(n, m.value) != m.value for n, m in read.slots.items())
        kind = MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
        return Understanding(
            kind, Source.SYSTEM1, text, intent, slots=read.slots, target=read.flow, assumed=read.assumed
        )
    scores = (FlowScore(read.flow, read.sure),)
    return Understanding(
        MessageKind.TASK, Source.SYSTEM1, text, intent, scores, read.slots, assumed=read.assumed
    )
