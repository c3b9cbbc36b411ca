"""PL-1, PL-4: a plan's record, and its flows after its end."""

from __future__ import annotations

from orchestrator.dialogue.changes.plan_steps import drop_step, read_progress
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.lifecycle import MISPREDICTED, PLAN_ABANDONED
from orchestrator.dialogue.stack import FlowStack
from tests.unit.dialogue.factories import (
    BOOK_FLIGHT,
    CHAT,
    FIND_HOTEL,
    PLAN_PARTY,
    PLAN_TRIP,
    RENT_CAR,
    expand,
    push_all,
    push_plan,
)


def test_pl1_the_plan_itself_comes_last_and_is_not_completed_by_itself() -> None:
    stack = FlowStack()
    plan, flows = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL)
    for flow in flows:
        assert stack.active is flow
        stack.complete(flow)
        stack.pop_finished(9.0)
    assert stack.active is plan
    assert str(read_progress(plan)) == "2 of 2"


def test_pl4_progress_outlives_the_flows_on_the_stack() -> None:
    stack = FlowStack()
    plan, (book, _, _) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL, RENT_CAR)
    stack.complete(book)
    stack.pop_finished(1.0)
    drop_step(stack, plan, plan.steps[1], "no need", 2.0)
    stack.pop_finished(3.0)
    told = read_progress(plan)
    assert (str(told), told.failed) == ("1 of 2", 0)
    assert [step.dact for step in plan.steps if not step.is_finished] == ["rent_car"]


def test_pl4_an_invalid_plan_takes_its_flows_with_it_also_nested_ones() -> None:
    stack = FlowStack()
    plan, (party, hotel) = push_plan(stack, PLAN_PARTY, FIND_HOTEL)
    assert isinstance(party, PlanFlow)
    expand(stack, party, RENT_CAR, now=1.0)
    chat = CHAT(2.0)
    stack.push(chat, 2.0)
    assert stack.tasks() == [plan, chat]
    gone = stack.cancel(plan)
    assert {flow.dact for flow in gone} == {"plan_trip", "plan_party", "find_hotel", "rent_car"}
    assert hotel.status == PLAN_ABANDONED
    assert len(stack.pop_finished(3.0)) == 4
    assert stack.flows == [chat]


def test_pl4_a_mispredicted_plan_leaves_by_fallback() -> None:
    stack = FlowStack()
    (plan,) = push_all(stack, PLAN_TRIP)
    stack.fall_back(BOOK_FLIGHT, 1.0)
    assert plan.status == MISPREDICTED


def test_the_current_plan_is_that_of_the_top_flow() -> None:
    stack = FlowStack()
    assert stack.plan is None
    plan, _ = push_plan(stack, BOOK_FLIGHT)
    assert stack.plan is plan
    stack.push(CHAT(0.0), 1.0)
    assert stack.plan is None
