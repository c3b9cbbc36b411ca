"""What a plan's record tells and how replanning may change the stack (PL-2, PL-4).

Deciding which change is right is the Plan policy's and the Agent's business; putting steps onto
the stack is in `plan_stacking`.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import ACTIVE, CANCELLED, PRUNED, FlowState
from orchestrator.dialogue.stack import FlowStack
from orchestrator.errors import IllegalTransition, NotFound


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a plan is: `completed` of `total` sub-flows.

    What was pruned or left out is not counted, and a look-up that is made anew counts once.
    """

    completed: int
    total: int
    failed: int
    remaining: tuple[str, ...]
    """Dacts still to come, next first."""

    def __str__(self) -> str:
        return f"{self.completed} of {self.total}"


def find_plan(stack: FlowStack, plan_id: str) -> PlanFlow:
    """The Plan flow on the stack. Raises NotFound."""
    root = stack.get(plan_id)
    if not isinstance(root, PlanFlow):
        raise NotFound("plan", plan_id)
    return root


def current_plan(stack: FlowStack) -> PlanFlow | None:
    """The plan that the top flow serves, or is."""
    top = stack.top
    if top is None:
        return None
    return top if isinstance(top, PlanFlow) else stack.plan_of(top)


def read_progress(plan: PlanFlow) -> Progress:
    """Read at any time, also from an archived plan (PL-4)."""
    latest = {step.name: step for step in plan.steps}
    counted = [s for s in plan.steps if latest[s.name] is s and s.standing not in {PRUNED, CANCELLED}]
    return Progress(
        completed=sum(step.state is FlowState.COMPLETED for step in counted),
        total=len(counted),
        failed=sum(step.state is FlowState.INVALID for step in counted),
        remaining=tuple(step.dact for step in counted if step.state in {FlowState.PENDING, FlowState.ACTIVE}),
    )


def progress(stack: FlowStack, plan_id: str) -> Progress:
    """Progress of a plan on the stack. Raises NotFound."""
    return read_progress(find_plan(stack, plan_id))


def scope(stack: FlowStack, plan_id: str) -> list[BaseFlow]:
    """The flows that replanning may touch: Pending ones of this very plan, next first (PL-4).

    The next one counts although it has become Active, as long as no turn has worked on it.
    """
    return [flow for flow in reversed(stack.flows) if flow.plan_id == plan_id and _is_untouched(flow)]


def _is_untouched(flow: BaseFlow) -> bool:
    return flow.state is FlowState.PENDING or (flow.standing == ACTIVE and not flow.turn_ids)


def prune(stack: FlowStack, flow: BaseFlow, now: float) -> list[BaseFlow]:
    """Give up a sub-flow that has become unnecessary (PL-2). Returns every flow that became Invalid."""
    plan = stack.plan_of(flow)
    if plan is None or flow not in scope(stack, plan.flow_id):
        raise IllegalTransition(f"The flow {flow.dact} is not within the scope of replanning.")
    if flow.standing == ACTIVE:
        stack.hold_active(now)
    plan.revision += 1
    return stack.invalidate(flow, PRUNED)


def reorder(stack: FlowStack, plan_id: str, order: list[str], now: float) -> list[BaseFlow]:
    """Put the plan's remaining flows into the order of `order` (dacts or identifiers, next first).

    Those that are not named keep their order, after the named ones. A plan within the plan moves
    with its own flows above it. Returns the new order.
    """
    plan = find_plan(stack, plan_id)
    waiting = scope(stack, plan_id)
    named = [flow for name in order for flow in waiting if name in {flow.dact, flow.flow_id}]
    ordered = list(dict.fromkeys([*named, *waiting]))
    if ordered == waiting:
        return ordered
    blocks = [member for flow in reversed(ordered) for member in (flow, *stack.members(flow.flow_id))]
    if stack.active in blocks:
        stack.hold_active(now)
    places = [place for place, flow in enumerate(stack.flows) if flow in blocks]
    for place, flow in zip(places, blocks, strict=True):
        stack.flows[place] = flow
    plan.revision += 1
    _sort_steps(plan, ordered)
    stack.reactivate()
    return ordered


def _sort_steps(plan: PlanFlow, ordered: list[BaseFlow]) -> None:
    """Give the steps of these flows their new order in the places that they hold among all steps."""
    by_id = {step.flow_id: step for step in plan.steps}
    moved = [by_id[flow.flow_id] for flow in ordered if flow.flow_id in by_id]
    places = [place for place, step in enumerate(plan.steps) if any(step is other for other in moved)]
    for place, step in zip(places, moved, strict=True):
        plan.steps[place] = step
