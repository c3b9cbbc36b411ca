"""PL-1, PL-2, FS-10: a plan's steps on the stack, in order, with each dact once."""

from __future__ import annotations

from orchestrator.dialogue.changes.plan_steps import (
    add_steps,
    drop_step,
    order_steps,
    read_progress,
    stack_steps,
)
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.lifecycle import ACTIVE, CANCELLED, INTERRUPTED, PLANNED, PRUNED
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.stack import FlowStack
from orchestrator.types import Dact, FlowId, new_id
from tests.unit.dialogue.factories import BOOK_FLIGHT, CHAT, FIND_HOTEL, PLAN_TRIP, RENT_CAR, expand, push_all

TYPES = {flow.spec.dact: flow for flow in (BOOK_FLIGHT, FIND_HOTEL, RENT_CAR, PLAN_TRIP, CHAT)}


def begin(*dacts: str, stack: FlowStack | None = None) -> tuple[FlowStack, PlanFlow]:
    """Start a plan whose steps are named a, b, c, …."""
    stack = stack or FlowStack()
    plan = PLAN_TRIP(1.0)
    assert isinstance(plan, PlanFlow)
    stack.push(plan, 1.0)
    names = "abcdef"
    add_steps(
        plan, [PlanStep(FlowId(new_id("flow")), Dact(dact), name=names[i]) for i, dact in enumerate(dacts)]
    )
    stack_steps(stack, plan, TYPES, 2.0, lambda _step, _flow: True)
    return stack, plan


def dacts(stack: FlowStack) -> list[str]:
    return [flow.dact for flow in stack.flows]


def finish_top(stack: FlowStack, plan: PlanFlow) -> None:
    assert stack.active is not None
    stack.complete(stack.active)
    stack.pop_finished(3.0)
    stack_steps(stack, plan, TYPES, 3.0, lambda _step, _flow: True)


def test_the_first_step_is_on_top_and_active() -> None:
    stack, _ = begin("book_flight", "find_hotel")
    assert dacts(stack) == ["plan_trip", "find_hotel", "book_flight"]
    assert [flow.status for flow in stack.flows] == [PLANNED, PLANNED, ACTIVE]
    assert stack.check() == []


def test_fs10_a_second_step_of_a_dact_waits_until_the_first_has_left() -> None:
    stack, plan = begin("find_hotel", "find_hotel", "book_flight")
    assert dacts(stack) == ["plan_trip", "book_flight", "find_hotel"]
    finish_top(stack, plan)
    assert dacts(stack) == ["plan_trip", "book_flight", "find_hotel"]
    assert stack.active is not None
    assert stack.active.flow_id == plan.steps[1].flow_id
    assert stack.check() == []
    finish_top(stack, plan)
    finish_top(stack, plan)
    assert stack.active is plan
    assert str(read_progress(plan)) == "3 of 3"


def test_another_order_brings_the_second_of_a_dact_forward() -> None:
    stack, plan = begin("find_hotel", "find_hotel", "book_flight")
    assert order_steps(plan, ["b", "a"])
    stack_steps(stack, plan, TYPES, 3.0, lambda _step, _flow: True)
    assert stack.active is not None
    assert stack.active.flow_id == plan.step_named("b").flow_id  # type: ignore[union-attr]
    assert dacts(stack) == ["plan_trip", "book_flight", "find_hotel"]
    assert stack.check() == []


def test_a_flow_at_work_stays_on_top() -> None:
    stack, plan = begin("book_flight", "find_hotel", "rent_car")
    assert stack.active is not None
    stack.active.progress.begin()
    order_steps(plan, ["c", "b"])
    stack_steps(stack, plan, TYPES, 3.0, lambda _step, _flow: True)
    assert dacts(stack) == ["plan_trip", "find_hotel", "rent_car", "book_flight"]


def test_what_waits_on_the_stack_is_adopted() -> None:
    stack = FlowStack()
    (hotel,) = push_all(stack, FIND_HOTEL)
    stack, plan = begin("book_flight", "find_hotel", stack=stack)
    assert stack.flows[1] is hotel
    assert (hotel.plan_id, hotel.status) == (plan.flow_id, INTERRUPTED)
    assert plan.steps[1].flow_id == hotel.flow_id
    assert stack.check() == []


def test_fs10_a_plan_whose_every_step_waits_below_it_takes_them_up() -> None:
    stack = FlowStack()
    push_all(stack, FIND_HOTEL, BOOK_FLIGHT)
    stack, plan = begin("book_flight", "find_hotel", stack=stack)
    assert dacts(stack) == ["plan_trip", "find_hotel", "book_flight"]
    assert {flow.plan_id for flow in stack.flows[1:]} == {plan.flow_id}
    assert stack.active is stack.flows[2]
    assert stack.check() == []


def test_a_plan_that_was_given_up_takes_no_flows() -> None:
    stack, plan = begin("book_flight", "find_hotel")
    stack.cancel(plan)
    assert expand(stack, plan, RENT_CAR) == []
    assert len(stack.pop_finished(5.0)) == 3


def test_nothing_moves_while_another_task_is_on_top() -> None:
    stack, plan = begin("book_flight", "find_hotel")
    push_all(stack, CHAT)
    before = dacts(stack)
    order_steps(plan, ["b"])
    stack_steps(stack, plan, TYPES, 3.0, lambda _step, _flow: True)
    assert dacts(stack) == before


def test_pl2_a_step_that_is_put_first_comes_before_the_one_that_has_not_begun() -> None:
    stack, plan = begin("book_flight", "find_hotel")
    finish_top(stack, plan)
    (car,) = expand(stack, plan, RENT_CAR, now=4.0, after=())
    assert dacts(stack) == ["plan_trip", "find_hotel", "rent_car"]
    assert stack.active is car
    assert stack.flows[1].status == PLANNED
    assert str(read_progress(plan)) == "1 of 3"


def test_a_step_that_is_dropped_leaves_and_the_next_one_comes() -> None:
    stack, plan = begin("book_flight", "find_hotel", "rent_car")
    assert drop_step(stack, plan, plan.steps[0], "no need", 3.0)
    assert drop_step(stack, plan, plan.steps[1], "unwanted", 3.0, by_user=True)
    assert not drop_step(stack, plan, plan.steps[0], "again", 3.0)
    stack.pop_finished(3.0)
    stack_steps(stack, plan, TYPES, 3.0, lambda _step, _flow: True)
    assert dacts(stack) == ["plan_trip", "rent_car"]
    assert [step.status for step in plan.steps[:2]] == [PRUNED, CANCELLED]
    assert str(read_progress(plan)) == "0 of 1"
    assert stack.check() == []
