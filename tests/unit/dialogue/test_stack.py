"""FS-8 … FS-13: the stack's operations."""

from __future__ import annotations

import pytest

from orchestrator.dialogue.lifecycle import (
    ABANDONED,
    ACTIVE,
    AWAITING_APPROVAL,
    FAILED,
    INTERRUPTED,
    MISPREDICTED,
    PLAN_ABANDONED,
    PLANNED,
)
from orchestrator.dialogue.stack import DepthLimit, Existing, FlowStack, OnLimit, Pushed
from orchestrator.errors import IllegalTransition
from orchestrator.types import TurnId
from tests.unit.dialogue.factories import (
    BOOK_FLIGHT,
    CHAT,
    CHECK_BOOKING,
    FIND_HOTEL,
    MODIFY_BOOKING,
    PLAN_TRIP,
    RENT_CAR,
    push_all,
    push_plan,
)


def test_fs9_pushing_interrupts_with_time_and_reason() -> None:
    stack = FlowStack()
    book, check = BOOK_FLIGHT(0.0), CHECK_BOOKING(0.0)
    stack.push(book, 10.0)
    assert stack.push(check, 20.0, reason="wants to check first") == Pushed(check)
    assert stack.active is check
    assert (book.status, book.interrupted_at) == (INTERRUPTED, 20.0)
    assert book.interruption == "wants to check first"
    assert check.started_at == 20.0
    assert len(stack) == 2


def test_fs9_invalid_flows_leave_from_anywhere() -> None:
    stack = FlowStack()
    book, check, hotel = push_all(stack, BOOK_FLIGHT, CHECK_BOOKING, FIND_HOTEL)
    stack.cancel(check)
    stack.invalidate(hotel, FAILED)
    assert stack.flows == [book, check, hotel]
    assert stack.pop_finished(200.0) == [hotel, check]
    assert stack.active is book


@pytest.mark.parametrize("waiting", [INTERRUPTED, ACTIVE, AWAITING_APPROVAL])
def test_fs10_a_dact_on_the_stack_is_carried_on(waiting: object) -> None:
    stack = FlowStack()
    book = BOOK_FLIGHT(0.0)
    stack.push(book, 0.0)
    if waiting == AWAITING_APPROVAL:
        stack.park(book, 1.0)
    if waiting != ACTIVE:
        stack.push(CHAT(0.0), 2.0)
    assert stack.push(BOOK_FLIGHT(3.0), 3.0) == Existing(book)
    assert stack.top is book
    assert book.status == (AWAITING_APPROVAL if waiting == AWAITING_APPROVAL else ACTIVE)
    assert stack.check() == []


def test_fs10_a_finished_flow_does_not_stand_in_the_way() -> None:
    stack = FlowStack()
    (book,) = push_all(stack, BOOK_FLIGHT)
    stack.complete(book)
    again = BOOK_FLIGHT(5.0)
    assert stack.push(again, 5.0) == Pushed(again)
    assert stack.check() == []


def test_fs11_fallback_carries_over_what_fits() -> None:
    stack = FlowStack()
    (book,) = push_all(stack, BOOK_FLIGHT)
    book.fill_slots_by_label({"origin": "LHR", "date": "2026-03-01"})
    book.confirm()
    book.note_turn(TurnId("turn_1"))
    new = stack.fall_back(FIND_HOTEL, 50.0, flow_id="flow_new")
    assert book.status == MISPREDICTED
    assert stack.flows == [new]
    assert stack.active is new
    assert new.flow_id == "flow_new"
    assert new.values() == {"date": "2026-03-01"}
    assert not new.slots["date"].confirmed
    assert new.turn_ids == ["turn_1"]
    assert stack.pop_finished(51.0) == [book]


def test_fs11_fallback_drops_what_the_target_turns_away() -> None:
    stack = FlowStack()
    (hotel,) = push_all(stack, FIND_HOTEL)
    hotel.fill_slots_by_label({"city": "Rome", "date": "2026-03-01"})
    hotel.slots["city"].value = {"name": "Rome"}
    new = stack.fall_back(RENT_CAR, 50.0)
    assert new.values() == {}


def test_fs11_fallback_keeps_the_place_in_a_plan() -> None:
    stack = FlowStack()
    plan, (book, _) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL)
    new = stack.fall_back(RENT_CAR, 5.0)
    assert new.plan_id == plan.flow_id
    assert [step.dact for step in plan.steps] == ["rent_car", "find_hotel"]
    assert plan.steps[0].flow_id == new.flow_id
    assert book not in stack.flows
    assert stack.check() == []


def test_fs11_fallback_to_a_waiting_flow_carries_that_one_on() -> None:
    stack = FlowStack()
    hotel, book = push_all(stack, FIND_HOTEL, BOOK_FLIGHT)
    hotel.fill_slots_by_label({"city": "Rome"})
    book.fill_slots_by_label({"date": "2026-03-01"})
    assert stack.fall_back(FIND_HOTEL, 99.0) is hotel
    assert stack.flows == [hotel]
    assert hotel.status == ACTIVE
    assert hotel.values() == {"city": "Rome", "date": "2026-03-01"}


def test_fs11_fallback_needs_another_active_flow() -> None:
    stack = FlowStack()
    with pytest.raises(IllegalTransition, match="No flow is Active"):
        stack.fall_back(RENT_CAR, 1.0)
    push_all(stack, RENT_CAR)
    with pytest.raises(IllegalTransition, match="itself"):
        stack.fall_back(RENT_CAR, 1.0)


def test_fs12_cancel_oldest_spares_what_awaits_approval_while_it_can() -> None:
    stack = FlowStack()
    (book,) = push_all(stack, BOOK_FLIGHT)
    stack.park(book, 1.0)
    push_all(stack, CHECK_BOOKING, RENT_CAR, now=10.0)
    stack.push(FIND_HOTEL(0.0), 300.0, limit=DepthLimit(3))
    assert book.status == AWAITING_APPROVAL
    assert stack.find("check_booking") is None


def test_fs12_a_plan_counts_as_one() -> None:
    stack = FlowStack()
    plan, flows = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL, RENT_CAR)
    assert stack.tasks() == [plan]
    limit = DepthLimit(2, OnLimit.CANCEL_OLDEST)
    assert isinstance(stack.push(CHECK_BOOKING(0.0), 5.0, limit=limit), Pushed)
    result = stack.push(CHAT(0.0), 6.0, limit=limit)
    assert isinstance(result, Pushed)
    assert result.cancelled == (plan,)
    assert {flow.status for flow in flows} == {PLAN_ABANDONED}


def test_fs12_a_flow_that_serves_a_plan_needs_no_room_of_its_own() -> None:
    stack = FlowStack()
    plan, _ = push_plan(stack, BOOK_FLIGHT)
    car = RENT_CAR(0.0, plan_id=plan.flow_id)
    assert stack.push(car, 5.0, limit=DepthLimit(1, OnLimit.REJECT_NEW)) == Pushed(car)
    assert [step.dact for step in plan.steps] == ["book_flight", "rent_car"]


def test_fs13_a_plan_at_work_is_not_stale_and_goes_as_a_whole() -> None:
    stack = FlowStack()
    plan, flows = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL)
    assert stack.find_abandoned(10.0, now=5_000.0) == []
    stack.push(CHAT(0.0), 5_000.0)
    assert stack.find_abandoned(10.0, now=5_005.0) == []
    assert stack.abandon(10.0, now=5_011.0) == [plan, *reversed(flows)]
    assert plan.status == ABANDONED
    assert {flow.status for flow in flows} == {PLAN_ABANDONED}


def test_resuming_a_plan_brings_its_flows() -> None:
    stack = FlowStack()
    plan, (book, hotel) = push_plan(stack, BOOK_FLIGHT, FIND_HOTEL)
    chat = CHAT(0.0)
    stack.push(chat, 5.0)
    assert stack.resume(plan, 6.0) is book
    assert stack.flows == [chat, plan, hotel, book]
    stack.push(MODIFY_BOOKING(0.0), 7.0)
    assert stack.resume(hotel, 8.0) is hotel
    names = [flow.dact for flow in stack.flows]
    assert names == ["chat", "modify_booking", "plan_trip", "book_flight", "find_hotel"]
    assert stack.check() == []


def test_invariants_are_told_in_sentences() -> None:
    stack = FlowStack()
    book, other = BOOK_FLIGHT(0.0, flow_id="flow_1"), BOOK_FLIGHT(0.0, flow_id="flow_1", plan_id="flow_9")
    other.status = PLANNED
    stack.flows = [book, other]
    assert stack.check() == [
        "book_flight is Active below the top of the stack.",
        "The top flow book_flight is Pending (planned).",
        "book_flight serves a plan that is not below it on the stack.",
        "The ID flow_1 is used twice.",
    ]


def test_a_dact_is_open_once_outside_of_plans_and_once_within_each() -> None:
    """FS-10: an outside flow is not a plan's step, and vice versa."""
    stack = FlowStack()
    plan = PLAN_TRIP(0.0)
    own = BOOK_FLIGHT(0.0, plan_id=plan.flow_id)
    waiting = BOOK_FLIGHT(0.0)
    waiting.status = plan.status = INTERRUPTED
    stack.flows = [waiting, plan, own]
    assert stack.check() == []
    assert stack.find("book_flight") is own

    stack.flows = [BOOK_FLIGHT(0.0), waiting]
    assert "book_flight is on the stack twice." in stack.check()
