"""What a plan's record tells. Putting its steps onto the stack and changing them is in `plan_stacking`."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.lifecycle import CANCELLED, PRUNED, FlowState
from orchestrator.dialogue.stack import FlowStack


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a plan is: `completed` of `total` sub-flows.

    What was pruned or left out is not counted, and a look-up that is made anew counts once.
    """

    completed: int
    total: int
    failed: int

    def __str__(self) -> str:
        return f"{self.completed} of {self.total}"


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
    )
