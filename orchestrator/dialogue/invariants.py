"""What always holds for a stack of flows (FS-8, FS-10, PL-4); each check says in a sentence what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import ACTIVE, PARKED

Flows: TypeAlias = Sequence[BaseFlow]


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def check_active(flows: Flows) -> list[str]:
    """Only the top can be Active, so there is at most one."""
    return [f"{flow.dact} is Active below the top." for flow in flows[:-1] if flow.standing == ACTIVE]


def check_top(flows: Flows) -> list[str]:
    """The top is Active or parked, or has just ended and waits to leave."""
    if not flows or flows[-1].is_finished or flows[-1].standing in {ACTIVE, *PARKED}:
        return []
    return [f"The top flow {flows[-1].dact} is {flows[-1].standing}."]


def check_duplicates(flows: Flows) -> list[str]:
    """No dact is Pending or Active twice."""
    dacts = [flow.dact for flow in flows if not flow.is_finished]
    return [f"{dact} is on the stack twice." for dact in _repeated(dacts)]


def check_identifiers(flows: Flows) -> list[str]:
    """No two flows have one identifier."""
    return [f"The identifier {name} is used twice." for name in _repeated([flow.flow_id for flow in flows])]


def check_plans(flows: Flows) -> list[str]:
    """A flow that serves a plan stands above it."""
    places: dict[str, int] = {
        flow.flow_id: place for place, flow in enumerate(flows) if isinstance(flow, PlanFlow)
    }
    return [
        f"{flow.dact} serves a plan that is not below it on the stack."
        for place, flow in enumerate(flows)
        if flow.plan_id is not None and not flow.is_finished and places.get(flow.plan_id, place) >= place
    ]


CHECKS: tuple[Callable[[Flows], list[str]], ...] = (
    check_active,
    check_top,
    check_duplicates,
    check_identifiers,
    check_plans,
)


def check_flows(flows: Flows) -> list[str]:
    """All sentences about what is wrong with the flows of a stack, top last."""
    return [sentence for check in CHECKS for sentence in check(flows)]
