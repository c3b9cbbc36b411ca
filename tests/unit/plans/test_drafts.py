"""PL-1: plans from a model are repaired or rejected before anything is stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from orchestrator.dialogue.flow import BaseFlow, PlanFlow, make_flow_class
from orchestrator.dialogue.lifecycle import COMPLETED
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.specification import Family, FlowSpec, SlotSpec
from orchestrator.plans.drafts import Draft, Refused, check_draft
from orchestrator.types import Dact, FlowId, Json, JsonObject
from tests.cases import for_each


def flow(dact: str, family: Family = Family.READ, **more: Any) -> type[BaseFlow]:
    slots = {name: SlotSpec(name, "free_text") for name in more.pop("slots", ())}
    return make_flow_class(FlowSpec(Dact(dact), "001", family.value, family, slots=slots, **more))


TRIP = flow("plan_trip", Family.PLAN, slots=("city",))
FLOWS = {
    each.spec.dact: each
    for each in (
        TRIP,
        flow("search_flights", slots=("city", "day"), outputs=("flight_id",)),
        flow("book_flight", Family.TRANSFORM, slots=("city",), inputs=("flight_id",), outputs=("booking",)),
        flow("list_bookings"),
        flow("chat", Family.CONVERSE),
        flow("tidy_memory", Family.INTERNAL),
    )
}


def as_said(flow: type[BaseFlow], values: Mapping[str, Json], now: float) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def judge(*steps: JsonObject, room: int = 8, done: Sequence[PlanStep] = ()) -> Draft | Refused:
    plan = TRIP(0.0)
    assert isinstance(plan, PlanFlow)
    plan.steps[:] = done
    return check_draft({"steps": list(steps)}, plan, FLOWS, as_said, room, 0.0, {})


def usable(*steps: JsonObject, room: int = 8) -> Draft:
    draft = judge(*steps, room=room)
    assert isinstance(draft, Draft), draft
    return draft


def names(draft: Draft) -> list[str]:
    return [step.name for step in draft.steps]


def test_a_good_draft_stays_as_it_is() -> None:
    draft = usable({"dact": "search_flights", "slots": {"day": "Friday"}}, {"dact": "book_flight"})
    assert names(draft) == ["search_flights", "book_flight"]
    assert draft.steps[0].slots["day"] == {"value": "Friday"}
    assert draft.problems == ()


@for_each("dact", ["rent_car", "tidy_memory", "chat", None, 7])
def test_what_is_no_step_is_left_out(dact: Any) -> None:
    """AG-7: a model's plan cannot start background flows."""
    draft = usable({"dact": dact}, {"dact": "list_bookings"})
    assert names(draft) == ["list_bookings"]
    assert len(draft.problems) == 1


def test_a_plan_within_a_plan_is_refused() -> None:
    assert judge({"dact": "plan_trip"}) == Refused(("'plan_trip' cannot be a step.", "No steps are left."))


def test_nothing_usable_is_refused() -> None:
    assert isinstance(judge({"dact": "rent_car"}), Refused)
    assert isinstance(judge(), Refused)


def test_names_are_read_as_they_are_meant() -> None:
    assert names(usable({"dact": "Search Flights"})) == ["search_flights"]


def test_a_step_comes_after_what_it_needs() -> None:
    draft = usable({"dact": "book_flight", "needs": ["search_flights"]}, {"dact": "search_flights"})
    assert names(draft) == ["search_flights", "book_flight"]


def test_steps_that_wait_for_each_other_are_refused() -> None:
    refused = judge(
        {"dact": "book_flight", "needs": ["list_bookings"]},
        {"dact": "list_bookings", "needs": ["book_flight"]},
    )
    assert isinstance(refused, Refused)
    assert "depend on each other" in refused.reasons[-1]


def test_a_need_that_is_no_step_is_left_out() -> None:
    draft = usable({"dact": "book_flight", "needs": ["rent_car", "book_flight"]})
    assert draft.steps[0].needs == ()


def test_a_missing_input_comes_from_the_step_that_gives_it() -> None:
    draft = usable({"dact": "search_flights"}, {"dact": "book_flight"})
    assert draft.steps[1].slots["flight_id"] == "search_flights.flight_id"
    assert draft.steps[1].needs == ("search_flights",)


def test_of_several_steps_the_one_with_the_same_values_gives_the_input() -> None:
    legs = [("Madrid", "Friday"), ("Rome", "Sunday")]
    draft = usable(
        *({"dact": "search_flights", "slots": {"city": city, "day": day}} for city, day in legs),
        *({"dact": "book_flight", "slots": {"city": city}} for city, _ in legs),
    )
    given = [step.slots["flight_id"] for step in draft.steps if step.dact == "book_flight"]
    assert given == ["search_flights.flight_id", "search_flights_2.flight_id"]


def test_a_slot_that_the_plan_has_comes_from_the_plan() -> None:
    assert usable({"dact": "search_flights"}).steps[0].slots["city"] == "city"


def test_the_same_step_twice_is_once_and_with_other_values_twice() -> None:
    day = {"dact": "search_flights", "slots": {"day": "Friday"}}
    draft = usable(day, dict(day), {"dact": "search_flights", "slots": {"day": "Sunday"}})
    assert names(draft) == ["search_flights", "search_flights_2"]


def test_slots_that_the_flow_does_not_have_are_left_out() -> None:
    draft = usable({"dact": "search_flights", "slots": {"colour": "red", "day": None}})
    assert "colour" not in draft.steps[0].slots
    assert "day" not in draft.steps[0].slots


def test_more_steps_than_there_is_room_for_are_left_out() -> None:
    draft = usable({"dact": "search_flights"}, {"dact": "list_bookings"}, {"dact": "book_flight"}, room=2)
    assert names(draft) == ["search_flights", "list_bookings"]
    assert "only 2 are allowed" in draft.problems[0]


def test_a_value_may_be_what_an_earlier_step_gives() -> None:
    draft = usable(
        {"dact": "search_flights", "slots": {"day": "Friday"}},
        {"dact": "book_flight", "slots": {"flight_id": "search_flights.flight_id"}},
    )
    assert draft.steps[1].slots["flight_id"] == "search_flights.flight_id"
    assert draft.steps[1].needs == ("search_flights",)
    assert draft.problems == ()


def test_slots_may_be_pairs_of_names_and_texts() -> None:
    """Endpoints that enforce the schema return pairs."""
    draft = usable(
        {"dact": "search_flights", "slots": [{"name": "day", "value": "Friday"}]},
        {"dact": "book_flight", "slots": [{"name": "flight_id", "value": "search_flights.flight_id"}]},
    )
    assert draft.steps[0].slots["day"] == {"value": "Friday"}
    assert draft.steps[1].slots["flight_id"] == "search_flights.flight_id"


@pytest.mark.parametrize(
    ("slot", "value"),
    [
        ("flight_id", "list_bookings.flight_id"),
        ("flight_id", "search_flights.flight_id"),
        ("flight_class", "business"),
    ],
)
def test_what_no_earlier_step_gives_and_no_slot_takes_is_left_out_and_named(slot: str, value: str) -> None:
    draft = usable({"dact": "list_bookings"}, {"dact": "book_flight", "slots": {slot: value}})

    assert draft.steps[1].slots.keys() == {"city"}
    assert draft.problems == (f"'book_flight' does not accept {value!r} for {slot!r}.",)


def test_a_step_that_is_done_is_not_proposed_again() -> None:
    """PL-2: the same task is a new step only with different values."""
    day: JsonObject = {"day": {"value": "Friday"}}
    done = PlanStep(FlowId("f1"), Dact("search_flights"), name="search_flights", slots=day)
    done.become(COMPLETED)
    again = judge({"dact": "search_flights", "slots": {"day": "Friday"}}, done=[done])
    assert isinstance(again, Refused)
    assert "'search_flights' is already done." in again.reasons
    other = judge({"dact": "search_flights", "slots": {"day": "Monday"}}, done=[done])
    assert isinstance(other, Draft)
