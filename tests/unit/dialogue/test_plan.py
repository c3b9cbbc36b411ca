"""PL-1, PL-2, PL-4: what a plan's record tells and how replanning may change the stack."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.lifecycle import ACTIVE, INTERRUPTED, MISPREDICTED, PLAN_ABANDONED, PLANNED, PRUNED
from orchestrator.dialogue.plan import current_plan, find_plan, progress, prune, read_progress, reorder, scope
from orchestrator.dialogue.stack import FlowStack
from orchestrator.errors import IllegalTransition, NotFound
from orchestrator.types import TurnId
from tests.unit.dialogue.factories import (
    BOOK_FLIGHT,
    CHAT,
    CHECK_BOOKING,
    FIND_HOTEL,
    PLAN_PARTY,
    PLAN_TRIP,
    RENT_CAR,
    push_all,
    push_plan,
)


def test_pl1_sub_flows_stand_above_the_plan_first_on_top() -> None:
    stack = FlowStack()
    plan, (book, hotel, car) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL, RENT_CAR)
    assert stack.flows == [plan, car, hotel, book]
    assert [flow.standing for flow in stack.flows] == [PLANNED, PLANNED, PLANNED, ACTIVE]
    assert {flow.plan_id for flow in (book, hotel, car)} == {plan.flow_id}
    assert stack.check() == []


def test_pl1_the_plan_itself_comes_last_and_is_not_completed_by_itself() -> None:
    stack = FlowStack()
    plan, flows = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL)
    for flow in flows:
        assert stack.active is flow
        stack.complete(flow)
        stack.pop_finished(9.0)
    assert stack.active is plan
    assert str(progress(stack, plan.flow_id)) == "2 of 2"


def test_fs10_a_plan_adopts_what_waits_and_drops_what_is_twice() -> None:
    stack = FlowStack()
    (book,) = push_all(stack, BOOK_FLIGHT)
    plan = PLAN_TRIP(1.0)
    stack.push(plan, 1.0)
    hotel, second = FIND_HOTEL(2.0), FIND_HOTEL(2.0)
    planned = stack.plan([BOOK_FLIGHT(2.0), hotel, second, PLAN_TRIP(2.0)], plan.flow_id, 2.0)
    assert planned.adopted == (book,)
    assert planned.pushed == (hotel,)
    assert [flow.dact for flow in planned.dropped] == ["find_hotel", "plan_trip"]
    assert stack.flows == [plan, book, hotel]
    assert book.standing == INTERRUPTED
    assert progress(stack, plan.flow_id).remaining == ("find_hotel", "book_flight")
    assert stack.check() == []


def test_a_plan_that_gets_nothing_stays_active() -> None:
    stack = FlowStack()
    (plan,) = push_all(stack, PLAN_TRIP)
    assert stack.plan([PLAN_TRIP(1.0)], plan.flow_id, 1.0).pushed == ()
    assert stack.active is plan


def test_sub_flows_need_a_plan_in_progress() -> None:
    stack = FlowStack()
    with pytest.raises(IllegalTransition, match="no plan"):
        stack.plan([CHAT(0.0)], "flow_9", 0.0)
    plan, chat = push_all(stack, PLAN_TRIP, CHAT)
    with pytest.raises(IllegalTransition, match="while chat is Active"):
        stack.plan([BOOK_FLIGHT(0.0)], plan.flow_id, 0.0)
    assert stack.flows == [plan, chat]


def test_pl4_progress_outlives_the_flows_on_the_stack() -> None:
    stack = FlowStack()
    plan, (book, hotel, _) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL, RENT_CAR)
    stack.complete(book)
    stack.pop_finished(1.0)
    prune(stack, hotel, 2.0)
    stack.pop_finished(3.0)
    told = progress(stack, plan.flow_id)
    assert (str(told), told.failed, told.remaining) == ("1 of 2", 0, ("rent_car",))
    assert isinstance(plan, PlanFlow)
    assert read_progress(plan) == told


def test_pl4_an_invalid_plan_takes_its_flows_with_it_also_nested_ones() -> None:
    stack = FlowStack()
    plan, (party, hotel) = push_plan(stack, PLAN_PARTY, FIND_HOTEL)
    stack.plan([RENT_CAR(0.0)], party.flow_id, 1.0)
    chat = CHAT(2.0)
    stack.push(chat, 2.0)
    assert stack.tasks() == [plan, chat]
    gone = stack.cancel(plan)
    assert {flow.dact for flow in gone} == {"plan_trip", "plan_party", "find_hotel", "rent_car"}
    assert hotel.standing == PLAN_ABANDONED
    assert len(stack.pop_finished(3.0)) == 4
    assert stack.flows == [chat]


def test_pl4_a_mispredicted_plan_leaves_by_fallback() -> None:
    stack = FlowStack()
    (plan,) = push_all(stack, PLAN_TRIP)
    stack.fall_back(BOOK_FLIGHT, 1.0)
    assert plan.standing == MISPREDICTED


def test_pl4_only_untouched_flows_of_this_plan_are_in_scope() -> None:
    stack = FlowStack()
    push_all(stack, CHECK_BOOKING)
    plan, (book, hotel) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL)
    assert scope(stack, plan.flow_id) == [book, hotel]
    book.note_turn(TurnId("turn_1"))
    assert scope(stack, plan.flow_id) == [hotel]
    with pytest.raises(IllegalTransition, match="scope"):
        prune(stack, book, 1.0)
    stack.push(CHAT(0.0), 5.0)
    with pytest.raises(IllegalTransition, match="scope"):
        prune(stack, stack.flows[0], 1.0)


def test_pl2_prune_the_next_flow() -> None:
    stack = FlowStack()
    _, (book, hotel) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL)
    assert prune(stack, book, 1.0) == [book]
    assert book.standing == PRUNED
    stack.pop_finished(2.0)
    assert stack.active is hotel


def test_pl2_reorder() -> None:
    stack = FlowStack()
    plan, (book, hotel, car) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL, RENT_CAR)
    revision = plan.revision
    assert reorder(stack, plan.flow_id, ["rent_car", hotel.flow_id], 1.0) == [car, hotel, book]
    assert stack.flows == [plan, book, hotel, car]
    assert [flow.standing for flow in stack.flows] == [PLANNED, PLANNED, PLANNED, ACTIVE]
    assert progress(stack, plan.flow_id).remaining == ("rent_car", "find_hotel", "book_flight")
    assert plan.revision == revision + 1
    assert reorder(stack, plan.flow_id, ["rent_car"], 1.0) == [car, hotel, book]
    assert plan.revision == revision + 1


def test_pl2_a_plan_within_the_plan_is_reordered_with_its_own_flows() -> None:
    stack = FlowStack()
    plan, (party, hotel) = push_plan(stack, PLAN_PARTY, FIND_HOTEL)
    stack.plan([RENT_CAR(0.0)], party.flow_id, 1.0)
    reorder(stack, plan.flow_id, ["find_hotel"], 2.0)
    assert [flow.dact for flow in stack.flows] == ["plan_trip", "plan_party", "rent_car", "find_hotel"]
    assert stack.active is hotel
    assert stack.check() == []


def test_pl2_expand() -> None:
    stack = FlowStack()
    plan, (book, hotel) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL)
    stack.complete(book)
    stack.pop_finished(1.0)
    car = RENT_CAR(2.0)
    stack.plan([car], plan.flow_id, 2.0)
    assert stack.flows == [plan, hotel, car]
    assert stack.active is car
    assert hotel.standing == PLANNED
    assert str(progress(stack, plan.flow_id)) == "1 of 3"


def test_the_current_plan_is_that_of_the_top_flow() -> None:
    stack = FlowStack()
    assert current_plan(stack) is None
    plan, _ = push_plan(stack, BOOK_FLIGHT)
    assert current_plan(stack) is plan
    stack.push(CHAT(0.0), 1.0)
    assert current_plan(stack) is None
    assert find_plan(stack, plan.flow_id) is plan
    with pytest.raises(NotFound):
        find_plan(stack, "flow_9")
