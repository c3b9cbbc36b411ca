"""PL-1, IR-4: a plan's steps, compared with the plan's values."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.dialogue.flow import BaseFlow, PlanFlow, make_flow_class
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.plans.bindings import Disagreement, find_disagreements
from orchestrator.types import Dact, FlowId

SLOTS = {name: SlotSpec(name, "free_text") for name in ("origin", "destination", "flight_id")}
TRIP = make_flow_class(FlowSpec(Dact("plan_trip"), "001", "Plan", Family.PLAN, slots=SLOTS))
BOOK = make_flow_class(FlowSpec(Dact("book_flight"), "002", "Act", Family.TRANSFORM, slots=SLOTS))

OUTBOUND = {"origin": "origin", "destination": "destination", "flight_id": "search.flight_id"}


def trip(**slots: str) -> PlanFlow:
    """Return a plan whose first step found a flight and whose second step books it."""
    plan = TRIP(0.0)
    assert isinstance(plan, PlanFlow)
    plan.fill_slots_by_label({"origin": "Bergen", "destination": "Paris"} | slots)
    search = PlanStep(FlowId("flow_s"), Dact("search_flights"), name="search")
    search.outputs = {"flight_id": "BGO-CDG-1"}
    plan.steps = [search, PlanStep(FlowId("flow_b"), Dact("book_flight"), name="book", slots=OUTBOUND)]
    return plan


def booking(flow_id: str = "flow_b", **slots: Any) -> BaseFlow:
    flow = BOOK(0.0, flow_id=FlowId(flow_id))
    flow.fill_slots_by_label(slots)
    return flow


def test_a_step_with_the_plans_values_agrees() -> None:
    flow = booking(origin="Bergen", destination="Paris", flight_id="BGO-CDG-1")
    assert find_disagreements(trip(), [flow]) == []


def test_a_foreign_booking_that_was_adopted_is_found_out() -> None:
    """A trip from Bergen to Paris adopts a waiting booking from Oslo to Rome as its outbound flight."""
    found = find_disagreements(trip(), [booking(origin="Oslo", destination="Rome")])

    assert found == [
        Disagreement("book", "origin", "Oslo", "Bergen"),
        Disagreement("book", "destination", "Rome", "Paris"),
    ]
    assert str(found[0]) == "book: origin is 'Oslo', and the plan has 'Bergen'"


def test_a_plan_that_was_corrected_leaves_a_booking_behind() -> None:
    flow = booking(origin="Bergen", destination="Paris")
    plan = trip()
    plan.fill_slots_by_label({"destination": "Rome"})

    assert find_disagreements(plan, [flow]) == [Disagreement("book", "destination", "Paris", "Rome")]


def test_what_an_earlier_step_found_counts_as_well() -> None:
    found = find_disagreements(trip(), [booking(flight_id="OSL-FCO-9")])
    assert found == [Disagreement("book", "flight_id", "OSL-FCO-9", "BGO-CDG-1")]


@pytest.mark.parametrize(
    "flows",
    [[], [booking()], [booking("flow_other", origin="Oslo")]],
    ids=["not begun", "no values yet", "not of the plan"],
)
def test_what_is_not_known_or_not_the_plans_is_no_disagreement(flows: list[BaseFlow]) -> None:
    assert find_disagreements(trip(), flows) == []
