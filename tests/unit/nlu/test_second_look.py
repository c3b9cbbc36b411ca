"""NL-7: what a model has understood is held against the words of the message, and never against more than these."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.understanding import FlowScore, Mention, MessageKind, Source, Understanding
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.nlu.readers.second_look import SecondLook
from tests.unit.nlu.flights import booking, confirming, nothing_open, system1
from tests.unit.nlu.test_modules import FLOW_MAP

LOOK = SecondLook(FLOW_MAP)


def by_model(kind: MessageKind, text: str, dact: str | None = None, **slots: object) -> Understanding:
    flows = () if dact is None else (FlowScore(dact, 0.9),)
    mentions = {name: Mention(value, str(value)) for name, value in slots.items()}
    return Understanding(kind, Source.SYSTEM2, text, flows=flows, slots=mentions)


def chosen(model: Understanding, context: NluContext) -> Understanding:
    other = system1().think(model.text, context).understanding
    return LOOK.choose(model, other, model.text, lambda: system1().opinion(model.text, context), context)


@pytest.mark.parametrize(
    "text", ["yes please", "That is correct.", "Yes, perfect. What is the phone number?"]
)
@pytest.mark.parametrize(
    ("kind", "dact"),
    [
        (MessageKind.TASK, "check_booking"),
        (MessageKind.SLOT_VALUE, None),
        (MessageKind.CANCELLATION, "book_flight"),
        (MessageKind.DENIAL, None),
    ],
)
def test_a_plain_yes_is_one_whatever_a_model_has_heard(
    text: str, kind: MessageKind, dact: str | None
) -> None:
    """PX-18: the words agree and ask for nothing else."""
    assert chosen(by_model(kind, text, dact), confirming()).kind is MessageKind.CONFIRMATION


@pytest.mark.parametrize(
    ("model", "context"),
    [
        (by_model(MessageKind.CANCELLATION, "yes, cancel it"), confirming()),
        (by_model(MessageKind.DENIAL, "yes, but not in the morning"), confirming()),
        (by_model(MessageKind.CORRECTION, "yes please", cabin="business"), confirming()),
        (by_model(MessageKind.TASK, "yes. Can you check my booking?", "check_booking"), confirming()),
        (by_model(MessageKind.CANCELLATION, "yes please"), nothing_open()),
    ],
    ids=["undone", "hedged", "with a value", "with a request", "nothing asked"],
)
def test_what_is_no_plain_yes_stays_what_the_model_has_heard(
    model: Understanding, context: NluContext
) -> None:
    assert chosen(model, context) is model


def test_values_name_the_task_that_has_a_place_for_them() -> None:
    """A task that has none of them is not what was asked for."""
    model = by_model(MessageKind.TASK, "a ticket to Madrid in business", "check_booking", cabin="business")
    assert chosen(model, nothing_open()).flows[0].dact == "book_flight"


def test_a_model_that_misnames_a_slot_is_right_about_the_task() -> None:
    """System 1 reads the same task in the words."""
    model = by_model(MessageKind.TASK, "find flights from Oslo to Madrid", "search_flights", cabin="economy")
    assert chosen(model, nothing_open()) is model


def test_an_answer_to_what_was_asked_begins_no_task_of_which_no_word_speaks() -> None:
    model = by_model(MessageKind.TASK, "on Sunday", "search_flights", date="2026-11-22")
    result = chosen(model, booking())
    assert (result.kind, result.slots["date"].value) == (MessageKind.SLOT_VALUE, "2026-11-22")


def test_a_question_about_what_is_there_begins_no_task_of_which_no_word_speaks() -> None:
    """At the beginning of a conversation a task is what is likeliest, in whatever words."""
    model = by_model(MessageKind.TASK, "thanks a lot", "check_booking")
    assert chosen(model, booking()).kind is MessageKind.CHITCHAT
    assert chosen(model, nothing_open()) is model
