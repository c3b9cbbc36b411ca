"""PL-2, PL-4: messages about a running plan, and messages about something else."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.flow import PlanFlow, make_flow_class
from orchestrator.dialogue.lifecycle import COMPLETED
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Digression, MessageKind, PlanAction, Understanding
from orchestrator.nlu.nlu_context import read_nlu_context
from orchestrator.nlu.protocol import Message
from orchestrator.nlu.readers.plan_changes import PlanReader
from orchestrator.types import Dact, FlowId, SessionId
from tests.unit.nlu.flights import at_once

TRIP = make_flow_class(FlowSpec(Dact("plan_trip"), "030", "Plan", Family.PLAN))
VERBS = frozenset({"book", "find", "search", "cancel", "add"})
STEPS = {
    "search": "search for flights",
    "book_outbound": "book the outbound flight",
    "book_return": "book the return flight",
    "hotel": "find a hotel",
}


def state_with_plan() -> DialogueState:
    state = DialogueState.new(SessionId("s"))
    plan = TRIP(0.0, flow_id=FlowId("plan"))
    assert isinstance(plan, PlanFlow)
    plan.steps = [
        PlanStep(FlowId(name), Dact("book_flight"), name=name, purpose=purpose)
        for name, purpose in STEPS.items()
    ]
    plan.steps[0].become(COMPLETED)
    state.stack.push(plan, 0.0)
    return state


def read_plan_words(text: str, state: DialogueState) -> Understanding | None:
    reading = at_once(
        PlanReader(VERBS, lambda *_: True).read(Message(text, text, text), read_nlu_context(state, 0.0))
    )
    return None if reading is None else reading.understanding


@pytest.mark.parametrize(
    ("text", "action", "step", "other"),
    [
        ("skip the hotel", PlanAction.SKIP, "hotel", None),
        ("Please leave out the return flight.", PlanAction.SKIP, "book_return", None),
        ("don't bother with the hotel", PlanAction.SKIP, "hotel", None),
        ("please don't book the return", PlanAction.SKIP, "book_return", None),
        ("there is no need to find a hotel", PlanAction.SKIP, "hotel", None),
        ("add a bag when everything is booked", PlanAction.ADD, None, None),
        ("skip it", PlanAction.SKIP, "book_outbound", None),
        ("skip this step please", PlanAction.SKIP, "book_outbound", None),
        ("skip", PlanAction.SKIP, "book_outbound", None),
        ("skip the train", PlanAction.SKIP, None, None),
        ("skip the flight", PlanAction.SKIP, None, None),
        ("skip the search", PlanAction.SKIP, None, None),
        ("book the return first", PlanAction.FIRST, "book_return", None),
        ("could you do the hotel first?", PlanAction.FIRST, "hotel", None),
        ("the hotel before the return flight", PlanAction.BEFORE, "hotel", "book_return"),
    ],
)
def test_changes(text: str, action: PlanAction, step: str | None, other: str | None) -> None:
    understood = read_plan_words(text, state_with_plan())
    assert understood is not None
    assert understood.kind is MessageKind.PLAN_CHANGE
    assert understood.plan_change is not None
    assert (understood.plan_change.action, understood.plan_change.step) == (action, step)
    assert understood.plan_change.other == other


@pytest.mark.parametrize(
    "text", ["what's the plan?", "how far are you", "Show me the plan", "what is left to do"]
)
def test_progress(text: str) -> None:
    understood = read_plan_words(text, state_with_plan())
    assert understood is not None
    assert (understood.kind, understood.digression) == (MessageKind.DIGRESSION, Digression.STATUS)


@pytest.mark.parametrize("text", ["cancel the trip", "forget the whole plan", "stop the plan please"])
def test_the_whole_plan(text: str) -> None:
    understood = read_plan_words(text, state_with_plan())
    assert understood is not None
    assert (understood.kind, understood.target) == (MessageKind.CANCELLATION, "plan")


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "cancel",
        "on Friday",
        "let me check my bags first",
        "business class",
        "the day before Friday",
        "no, Oslo",
        "forget what you know about me",
    ],
)
def test_everything_else_is_left_alone(text: str) -> None:
    assert read_plan_words(text, state_with_plan()) is None


def test_without_a_plan_nothing_is_about_one() -> None:
    assert read_plan_words("skip the hotel", DialogueState.new(SessionId("s"))) is None
