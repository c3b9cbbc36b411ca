"""AM-1 … AM-4: the open question on four levels."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.ambiguity import (
    AmbiguityHandler,
    Level,
    Option,
    Question,
    QuestionKind,
    show_value,
)
from orchestrator.dialogue.stack import FlowStack
from orchestrator.dialogue.state import DialogueState
from orchestrator.types import SessionId
from tests.unit.dialogue.factories import BOOK_FLIGHT, CHAT, CHECK_BOOKING, FLOW_TYPES, push_all


def make_handler(*classes: type) -> AmbiguityHandler:
    stack = FlowStack()
    push_all(stack, *classes)
    return AmbiguityHandler(stack)


def ask(handler: AmbiguityHandler, **details: object) -> Question:
    question = handler.ask(**details)  # type: ignore[arg-type]
    assert question is not None
    return question


def test_nothing_is_asked_when_nothing_is_unclear() -> None:
    handler = make_handler(BOOK_FLIGHT)
    assert handler.ask() is None
    assert handler.current is None
    assert handler.resolve() == []
    assert not handler.escalated(0)


def test_am1_general() -> None:
    handler = make_handler()
    handler.declare(Level.GENERAL)
    question = ask(handler)
    assert question.kind is QuestionKind.OPEN
    handler.declare(Level.GENERAL, options=[Option("Book a flight", "start_flow", {"dact": "book_flight"})])
    assert ask(handler).kind is QuestionKind.OPTIONS


def test_am1_partial_offers_the_candidates() -> None:
    handler = make_handler(BOOK_FLIGHT)
    flow_id = handler.stack.flows[-1].flow_id
    handler.declare(Level.PARTIAL, flow_id=flow_id, slot="origin", candidates=["SJC", "SJO"])
    question = ask(handler)
    assert question.kind is QuestionKind.OPTIONS
    assert [option.label for option in question.options] == ["SJC", "SJO"]
    assert question.options[0].payload == {"flow_id": flow_id, "slot": "origin", "value": "SJC"}


def test_am1_specific_is_open_without_candidates() -> None:
    handler = make_handler(BOOK_FLIGHT)
    flow_id = handler.stack.flows[-1].flow_id
    handler.declare(Level.SPECIFIC, flow_id=flow_id, slot="return_date")
    question = ask(handler)
    assert (question.kind, question.slot, question.options) == (QuestionKind.OPEN, "return_date", ())


def test_am1_confirmation_is_yes_or_no() -> None:
    handler = make_handler(BOOK_FLIGHT)
    flow_id = handler.stack.flows[-1].flow_id
    handler.declare(Level.CONFIRMATION, flow_id=flow_id, slot="origin", candidates=["LHR"])
    question = ask(handler)
    assert question.kind is QuestionKind.CONFIRMATION
    assert [option.action_name for option in question.options] == ["confirm", "deny"]
    assert question.options[0].payload["value"] == "LHR"


def test_am2_declarations_are_counted_by_level() -> None:
    handler = make_handler(BOOK_FLIGHT)
    for level in (Level.GENERAL, Level.SPECIFIC, Level.SPECIFIC):
        handler.declare(level)
    assert handler.counts == {Level.GENERAL: 1, Level.PARTIAL: 0, Level.SPECIFIC: 2, Level.CONFIRMATION: 0}
    assert len(handler.open) == 2


def test_am3_a_question_belongs_to_its_flow() -> None:
    handler = make_handler(BOOK_FLIGHT)
    (book,) = handler.stack.flows
    asked = handler.declare(Level.SPECIFIC, flow_id=book.flow_id, slot="date")
    chat = CHAT(1.0)
    handler.stack.push(chat, 1.0)
    assert handler.current is None
    assert handler.blocks(book.flow_id)
    assert not handler.blocks(chat.flow_id)
    general = handler.declare(Level.GENERAL)
    assert handler.current is general
    assert handler.resolve() == [general]
    handler.stack.complete(chat)
    handler.stack.pop_finished(2.0)
    assert handler.current is asked
    assert handler.resolve(flow_id=book.flow_id, slot="origin") == []
    assert handler.resolve(flow_id=book.flow_id, slot="date") == [asked]
    assert not handler.blocks(book.flow_id)


def test_am3_resolving_one_leaves_its_equals() -> None:
    handler = make_handler(BOOK_FLIGHT, CHECK_BOOKING)
    first, second = (
        handler.declare(Level.SPECIFIC, flow_id=f.flow_id, slot="x") for f in handler.stack.flows
    )
    assert handler.resolve(second) == [second]
    assert handler.resolve(level=Level.SPECIFIC) == [first]


def test_am4_after_so_many_rounds_it_escalates() -> None:
    handler = make_handler(BOOK_FLIGHT)
    flow_id = handler.stack.flows[-1].flow_id
    for _ in range(3):
        handler.declare(Level.SPECIFIC, flow_id=flow_id, slot="date")
        assert not ask(handler, limit=3).escalate
    handler.declare(Level.SPECIFIC, flow_id=flow_id, slot="date")
    assert handler.escalated(3)
    assert ask(handler, limit=3).escalate
    handler.resolve()
    handler.declare(Level.SPECIFIC, flow_id=flow_id, slot="date")
    assert not handler.escalated(3)


def test_ir3_asking_again_after_a_digression_is_no_further_round() -> None:
    handler = make_handler(BOOK_FLIGHT)
    entry = handler.declare(Level.SPECIFIC, slot="date")
    first = ask(handler)
    assert ask(handler, again=True) == first
    assert entry.asked == 1


def test_open_questions_are_bounded() -> None:
    handler = make_handler(BOOK_FLIGHT)
    for number in range(40):
        handler.declare(Level.SPECIFIC, slot=f"slot_{number}")
    assert len(handler.open) == 16
    assert handler.current is handler.open[-1]


def test_it_comes_back_from_json() -> None:
    handler = make_handler(BOOK_FLIGHT)
    handler.declare(Level.GENERAL, options=[Option("A", "b", {"c": [1]})], metadata={"failed": ["x"]})
    handler.declare(Level.PARTIAL, slot="origin", candidates=[{"name": "San Jose"}])
    handler.ask()
    state = DialogueState(SessionId("s"), stack=handler.stack)
    state.ambiguity = handler
    again = DialogueState.from_dict(state.serialize(), FLOW_TYPES).ambiguity
    assert (again.open, again.counts) == (handler.open, handler.counts)
    again.open[1].candidates.append("more")
    again.open[0].options[0].payload["c"].append(2)
    assert again.open != handler.open


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("LHR", "LHR"),
        (True, "yes"),
        (2.5, "2.5"),
        ([1, "a"], "1, a"),
        ({"name": "San Jose", "x": 1}, "San Jose"),
        ({"amount": 5, "currency": "EUR"}, "amount 5, currency EUR"),
    ],
)
def test_candidates_as_labels(value: object, shown: str) -> None:
    assert show_value(value) == shown
