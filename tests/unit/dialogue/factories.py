"""Flow types and flows for tests of the dialogue core."""

from __future__ import annotations

from typing import Any

from orchestrator.dialogue.changes.plan_steps import add_steps, stack_steps
from orchestrator.dialogue.flow import BaseFlow, PlanFlow, make_flow_class
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.specification import Family, FlowSpec, Priority, SlotSpec
from orchestrator.dialogue.stack import FlowStack
from orchestrator.types import Dact, FlowId, new_id


def make_slot(name: str, type_: str = "base", **changes: Any) -> SlotSpec:
    return SlotSpec(name=name, type=type_, **changes)


def make_spec(
    dact: str, *slots: SlotSpec, family: Family = Family.PREPARE, intent: str = "Book", **changes: Any
) -> FlowSpec:
    by_name = {slot.name: slot for slot in slots}
    return FlowSpec(dact=Dact(dact), dax="01A", intent=intent, family=family, slots=by_name, **changes)


BOOK_FLIGHT = make_flow_class(
    make_spec(
        "book_flight",
        make_slot("origin", "source", priority=Priority.REQUIRED),
        make_slot("destination", "target", priority=Priority.REQUIRED),
        make_slot("date", "date", priority=Priority.REQUIRED, depends_on=("origin", "destination")),
        make_slot("seat", "exact", depends_on=("date",)),
        make_slot("cabin", "category", values=("economy", "business"), default="economy"),
        description="Book a flight.",
        outputs=("booking_ref", "destination"),
    )
)
CHECK_BOOKING = make_flow_class(
    make_spec(
        "check_booking",
        make_slot("booking_ref", "exact", priority=Priority.REQUIRED),
        family=Family.READ,
        intent="Check",
        description="Look up a booking.",
        inputs=("booking_ref",),
        outputs=("booking_ref", "status"),
    )
)
MODIFY_BOOKING = make_flow_class(
    make_spec(
        "modify_booking",
        make_slot("date", "date", priority=Priority.REQUIRED),
        intent="Change",
        description="Change a booking.",
        inputs=("booking_ref",),
    )
)
FIND_HOTEL = make_flow_class(
    make_spec(
        "find_hotel",
        make_slot("city", priority=Priority.ELECTIVE, group="where"),
        make_slot("near", priority=Priority.ELECTIVE, group="where"),
        make_slot("price", "range", priority=Priority.ELECTIVE, group="what"),
        make_slot("stars", "level", minimum=1, maximum=5, priority=Priority.ELECTIVE, group="what"),
        make_slot("date", "date"),
        family=Family.READ,
        intent="Search",
        description="Search hotels.",
    )
)
RENT_CAR = make_flow_class(make_spec("rent_car", make_slot("city"), description="Rent a car."))
CHAT = make_flow_class(make_spec("chat", family=Family.CONVERSE, intent="Converse"))
PLAN_TRIP = make_flow_class(make_spec("plan_trip", family=Family.PLAN, intent="Plan"))
PLAN_PARTY = make_flow_class(make_spec("plan_party", family=Family.PLAN, intent="Plan"))

CLASSES = (BOOK_FLIGHT, CHECK_BOOKING, MODIFY_BOOKING, FIND_HOTEL, RENT_CAR, CHAT, PLAN_TRIP, PLAN_PARTY)
FLOW_TYPES = {cls.spec.dact: cls for cls in CLASSES}


def push_all(stack: FlowStack, *classes: type[BaseFlow], now: float = 0.0) -> list[BaseFlow]:
    """Push one flow of each class, a minute apart. The last one ends up Active."""
    flows: list[BaseFlow] = []
    for place, cls in enumerate(classes):
        flows.append(cls(now + 60 * place))
        stack.push(flows[-1], now + 60 * place)
    return flows


def push_plan(
    stack: FlowStack, *classes: type[BaseFlow], now: float = 0.0
) -> tuple[PlanFlow, list[BaseFlow]]:
    """Push a trip plan with one step of each class, of which the first is Active."""
    plan = PLAN_TRIP(now)
    assert isinstance(plan, PlanFlow)
    stack.push(plan, now)
    return plan, expand(stack, plan, *classes, now=now)


def expand(
    stack: FlowStack,
    plan: PlanFlow,
    *classes: type[BaseFlow],
    now: float = 0.0,
    after: tuple[str, ...] | None = None,
) -> list[BaseFlow]:
    """Add a step of each class to a plan. Return the flows that this put on the stack."""
    add_steps(plan, [PlanStep(FlowId(new_id("flow")), cls.spec.dact) for cls in classes], after=after)
    return stack_steps(stack, plan, FLOW_TYPES, now, lambda _step, _flow: True)
