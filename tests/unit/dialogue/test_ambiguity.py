"""AM-1 … AM-4: open questions on four levels."""

from __future__ import annotations

import json
from typing import get_args

from orchestrator.dialogue.ambiguity import AmbiguityHandler, Asked
from orchestrator.dialogue.questions import (
    AnyQuestion,
    AskSlot,
    ChangeWhat,
    ChooseRow,
    ChooseTask,
    ChooseToStop,
    ChooseValue,
    LeftOpen,
    Level,
    NextTask,
    Option,
    PendingCall,
    SettleDone,
    StoppedCall,
    TryAgain,
    Unclear,
    UnknownOutcome,
    WhichSlot,
)
from orchestrator.dialogue.questions.deeds import AskAgain, Decide, Decision, Propose, Start
from orchestrator.dialogue.stack import FlowStack
from orchestrator.dialogue.state import DialogueState
from orchestrator.types import Dact, FlowId, SessionId
from tests.cases import for_each
from tests.unit.dialogue.factories import BOOK_FLIGHT, CHAT, CHECK_BOOKING, FLOW_TYPES, push_all


def make_handler(*classes: type) -> AmbiguityHandler:
    stack = FlowStack()
    push_all(stack, *classes)
    return AmbiguityHandler(stack)


def ask(handler: AmbiguityHandler, **details: object) -> Asked:
    question = handler.ask(**details)  # type: ignore[arg-type]
    assert question is not None
    return question


def test_am2_declarations_are_counted_by_level() -> None:
    handler = make_handler(BOOK_FLIGHT)
    for question in (Unclear(), AskSlot(), AskSlot()):
        handler.declare(question)
    assert handler.counts == {Level.GENERAL: 1, Level.PARTIAL: 0, Level.SPECIFIC: 2, Level.CONFIRMATION: 0}
    assert len(handler.open) == 2


def test_am3_a_question_belongs_to_its_flow() -> None:
    handler = make_handler(BOOK_FLIGHT)
    (book,) = handler.stack.flows
    asked = handler.declare(AskSlot(flow_id=book.flow_id, slot="date"))
    chat = CHAT(1.0)
    handler.stack.push(chat, 1.0)
    assert handler.current is None
    assert handler.blocks(book.flow_id)
    assert not handler.blocks(chat.flow_id)
    general = handler.declare(Unclear())
    assert handler.current is general
    assert handler.resolve() == [general]
    handler.stack.complete(chat)
    handler.stack.pop_finished(2.0)
    assert handler.current is asked
    assert handler.resolve(flow_id=book.flow_id, level=Level.GENERAL) == []
    assert handler.resolve(flow_id=book.flow_id) == [asked]
    assert not handler.blocks(book.flow_id)


def test_am3_resolving_one_leaves_its_equals() -> None:
    handler = make_handler(BOOK_FLIGHT, CHECK_BOOKING)
    first, second = (handler.declare(AskSlot(flow_id=f.flow_id, slot="x")) for f in handler.stack.flows)
    assert handler.resolve(second) == [second]
    assert handler.resolve(level=Level.SPECIFIC) == [first]


def test_am4_after_so_many_rounds_it_escalates() -> None:
    handler = make_handler(BOOK_FLIGHT)
    flow_id = handler.stack.flows[-1].flow_id
    for _ in range(3):
        handler.declare(AskSlot(flow_id=flow_id, slot="date"))
        assert not ask(handler, limit=3).escalate
    handler.declare(AskSlot(flow_id=flow_id, slot="date"))
    assert handler.escalated(3)
    assert ask(handler, limit=3).escalate
    handler.resolve()
    handler.declare(AskSlot(flow_id=flow_id, slot="date"))
    assert not handler.escalated(3)


def test_ir3_asking_again_after_a_digression_is_no_further_round() -> None:
    handler = make_handler(BOOK_FLIGHT)
    entry = handler.declare(AskSlot(slot="date"))
    first = ask(handler)
    assert ask(handler, again=True) == first
    assert entry.asked == 1


def test_open_questions_are_bounded() -> None:
    handler = make_handler(BOOK_FLIGHT)
    for number in range(40):
        handler.declare(AskSlot(slot=f"slot_{number}"))
    assert len(handler.open) == 16
    assert handler.current is handler.open[-1]


EVERY_KIND: tuple[AnyQuestion, ...] = (
    PendingCall(flow_id=FlowId("f"), candidate="c1", shown={"a": [1]}, arguments={"to": ["x"]}),
    StoppedCall(flow_id=FlowId("f"), candidate="c2"),
    UnknownOutcome(flow_id=FlowId("f"), candidate="c3", what="Book"),
    TryAgain(flow_id=FlowId("f")),
    AskSlot(slot="date"),
    ChooseValue(slot="origin", options=(Option("A", "fill_slot", {"slot": "origin", "value": {"b": 1}}),)),
    ChooseRow(slot="flight"),
    ChangeWhat(flow_id=FlowId("f"), after_no=True),
    WhichSlot(),
    Unclear(),
    ChooseTask(),
    ChooseToStop(),
    NextTask(),
    LeftOpen(flow_id=FlowId("f"), text="Sweet or salty?"),
    SettleDone(shown={"done": ["booked"]}, proposed=Decision.REPEAT),
)


def test_every_kind_is_named_once() -> None:
    kinds = [question.kind for question in EVERY_KIND]
    assert len(kinds) == len({*kinds}) == len(get_args(get_args(AnyQuestion)[0]))


@for_each("question", EVERY_KIND, ids=lambda question: question.kind)
def test_it_comes_back_from_json(question: AnyQuestion) -> None:
    """ST-1: each kind is stored by name."""
    state = DialogueState(SessionId("s"))
    state.ambiguity.declare(question)
    again = DialogueState.from_dict(json.loads(json.dumps(state.serialize())), FLOW_TYPES).ambiguity
    assert [entry.about for entry in again.open] == [question]
    assert again.counts == state.ambiguity.counts


def test_a_question_with_one_reply_takes_a_yes_for_it_and_with_several_for_none() -> None:
    """AM-2"""
    first, second = (Option(name, "start_flow", {"dact": name}) for name in ("cook", "eat"))
    assert NextTask(options=(first,)).yes() == Start(Dact("cook"))
    assert Unclear(options=(first, second)).yes() == AskAgain()
    assert WhichSlot(options=(first, second)).yes() == AskAgain()


def test_a_model_that_hears_a_decision_only_proposes_it() -> None:
    """RT-12: a decision that a model reads about committed calls needs a confirmation, unless nothing changes."""
    options = (Option("Leave it", Decision.KEEP, {}), Option("Do it once more", Decision.REPEAT, {}))
    question = SettleDone(options=options)
    assert question.choose("Do it once more") == Propose(Decision.REPEAT, "Do it once more")
    assert question.choose("Leave it") == Decide(Decision.KEEP)
    assert question.choose("something else") is None
    assert question.yes() == AskAgain()
    assert SettleDone(proposed=Decision.REPEAT).yes() == Decide(Decision.REPEAT)
