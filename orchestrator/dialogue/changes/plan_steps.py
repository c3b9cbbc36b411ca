"""Stack, add, drop and reorder a plan's steps (PL-1, PL-4)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from orchestrator.dialogue.flow import BaseFlow, FlowTypes, PlanFlow
from orchestrator.dialogue.lifecycle import (
    ACTIVE,
    CANCELLED,
    INTERRUPTED,
    PLANNED,
    PRUNED,
    FlowState,
    FlowStatus,
)
from orchestrator.dialogue.records import ANSWERED, PlanStep
from orchestrator.dialogue.stack import FlowStack

Agrees: TypeAlias = Callable[[PlanStep, BaseFlow], bool]
"""A predicate that compares a waiting flow's values with the plan's values for a step."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A plan's progress: `completed` of `total` sub-flows.

    Dropped steps are not counted, and repeated steps with the same name count once.
    """

    completed: int
    total: int

    def __str__(self) -> str:
        return f"{self.completed} of {self.total}"


def read_progress(plan: PlanFlow) -> Progress:
    """Count a plan's steps. The plan may be archived (PL-4)."""
    latest = {step.name: step for step in plan.steps}
    counted = [s for s in plan.steps if latest[s.name] is s and s.status not in {PRUNED, CANCELLED}]
    return Progress(
        completed=sum(step.state is FlowState.COMPLETED for step in counted),
        total=len(counted),
    )


def stack_steps(
    stack: FlowStack, plan: PlanFlow, flow_types: FlowTypes, now: float, agrees: Agrees
) -> list[BaseFlow]:
    """Push the flows of the planned steps, with the first flow on top and Active.

    A running flow stays on top. A waiting flow becomes a step's flow only if `agrees` accepts it.
    Nothing happens if the plan has ended or the top flow isn't part of the plan. Return the new flows on the
    stack, in step order.
    """
    top = stack.top
    if top is None or plan.is_finished or (top is not plan and stack.plan_of(top) is not plan):
        return []
    before = {id(flow) for flow in stack.flows}
    planned = [step for step in plan.steps if step.is_planned or _is_fresh(stack, step)]
    if any(_is_fresh(stack, step) for step in planned):
        stack.hold_active(now)
    wanted: list[BaseFlow] = []
    for step in planned:
        flow = stack.get(step.flow_id) or _find_flow(stack, plan, step, flow_types, now, agrees, wanted)
        if flow is not None:
            wanted.append(flow)
    if _stands(stack, plan, wanted):
        stack.reactivate()
        return []
    active = stack.active
    if active is not None and (active is plan or active in wanted):
        stack.hold_active(now)
    block = [member for flow in reversed(wanted) for member in (flow, *stack.members(flow.flow_id))]
    inside = {id(flow) for flow in block}
    stack.flows[:] = [flow for flow in stack.flows if id(flow) not in inside]
    place = stack.flows.index(plan) + 1
    stack.flows[place:place] = block
    for flow in wanted:
        stack.keep_step(flow)
    stack.reactivate()
    return [flow for flow in wanted if id(flow) not in before]


def _is_fresh(stack: FlowStack, step: PlanStep) -> bool:
    flow = stack.get(step.flow_id)
    return flow is not None and flow.status == ACTIVE and not flow.progress.begun


def _find_flow(
    stack: FlowStack,
    plan: PlanFlow,
    step: PlanStep,
    flow_types: FlowTypes,
    now: float,
    agrees: Agrees,
    wanted: list[BaseFlow],
) -> BaseFlow | None:
    """Return a new flow or a matching interrupted flow for a step, or None if the step can't run yet."""
    if any(flow.dact == step.dact for flow in wanted):
        return None
    alike = [flow for flow in stack.live() if flow.dact == step.dact]
    for own in [flow for flow in alike if flow.plan_id == plan.flow_id]:
        if own.status != PLANNED or own in wanted:
            return None
        stack.flows.remove(own)  # the flow's step now comes later, with a new flow
    for waiting in alike:
        if waiting.status == INTERRUPTED and waiting.plan_id is None and agrees(step, waiting):
            waiting.plan_id = plan.flow_id
            step.flow_id = waiting.flow_id
            return waiting
    flow = flow_types[step.dact](now, flow_id=step.flow_id, plan_id=plan.flow_id)
    flow.status, flow.interrupted_at = PLANNED, now
    return flow


def _stands(stack: FlowStack, plan: PlanFlow, wanted: list[BaseFlow]) -> bool:
    """Return whether the flows are already above their plan in this order, the first on top."""
    above = stack.flows[stack.flows.index(plan) + 1 :]
    return [flow for flow in reversed(above) if flow in wanted] == wanted


def add_steps(plan: PlanFlow, steps: list[PlanStep], *, after: Collection[str] | None = None) -> None:
    """Add steps before the first unfinished step whose name is not in `after`. Default: at the end."""
    place = len(plan.steps)
    if after is not None:
        waiting = (i for i, step in enumerate(plan.steps) if not step.is_finished and step.name not in after)
        place = next(waiting, place)
    plan.steps[place:place] = steps
    plan.revision += 1


def drop_step(
    stack: FlowStack, plan: PlanFlow, step: PlanStep, note: str, now: float, *, by_user: bool = False
) -> bool:
    """Drop a step: `pruned`, or `cancelled` at the user's request. Return False if the step had already finished."""
    if step.is_finished:
        return False
    flow = stack.get(step.flow_id)
    status: FlowStatus = CANCELLED if by_user else PRUNED
    if flow is not None:
        if flow.status == ACTIVE and not by_user:
            stack.hold_active(now)
        stack.invalidate(flow, status)
    step.become(status, note)
    plan.revision += 1
    return True


def take_for_step(stack: FlowStack, plan: PlanFlow, step: PlanStep, done: BaseFlow, now: float) -> None:
    """Mark a planned step as answered by a completed flow, and copy the flow's outputs to the step."""
    drop_step(stack, plan, step, ANSWERED, now)
    step.flow_id = done.flow_id
    step.keep_outputs(done.outputs)


def order_steps(plan: PlanFlow, names: list[str]) -> bool:
    """Reorder the unfinished steps by `names`, with other steps last. Return False if nothing changed."""
    places = [place for place, step in enumerate(plan.steps) if not step.is_finished]
    waiting = [plan.steps[place] for place in places]
    named = [step for name in names for step in waiting if step.name == name]
    ordered = named + [step for step in waiting if all(step is not other for other in named)]
    if all(a is b for a, b in zip(ordered, waiting, strict=True)):
        return False
    for place, step in zip(places, ordered, strict=True):
        plan.steps[place] = step
    plan.revision += 1
    return True
