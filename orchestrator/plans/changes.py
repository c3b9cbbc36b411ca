"""Changes to plans: revisions, their records, and their effect on the stack (PL-2)."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import partial
from itertools import count

from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.plan_steps import (
    add_steps,
    drop_step,
    order_steps,
    read_progress,
    stack_steps,
)
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.records import PlanStep
from orchestrator.plans.bindings import agrees, find_disagreements
from orchestrator.turns.plan import PlanRevision
from orchestrator.types import Json, JsonObject


class ChangeKind(StrEnum):
    CONTINUE = "continue"
    REORDER = "reorder"
    EXPAND = "expand"
    PRUNE = "prune"


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a plan.

    `steps`: labels of the added or dropped steps, or of all steps in their new order. `matters`: True to tell
    the user.
    """

    kind: ChangeKind
    steps: tuple[str, ...] = ()
    why: str = ""
    matters: bool = True


def note_revision(context: TurnContext, plan: PlanFlow, outcome: str, why: str = "", **more: Json) -> None:
    number = plan.note_revision()
    context.changes.plans.log.append(PlanRevision(plan.flow_id, number, outcome, why, describe(plan, **more)))
    context.log.event("plan", plan_id=plan.flow_id, outcome=outcome, why=why, **show_progress(plan))


def stack_plan(context: TurnContext, plan: PlanFlow) -> None:
    """Push the planned steps. A flow that waits on the stack can be adopted as a step."""
    for flow in stack_steps(
        context.state.stack, plan, context.world.domain.flows, context.now, partial(agrees, plan)
    ):
        context.log.event("flow_pushed", dact=flow.dact, flow_id=flow.flow_id, plan_id=flow.plan_id)
    check_consistency(context, plan)


def check_consistency(context: TurnContext, plan: PlanFlow) -> None:
    """Log the values of flows on the stack that differ from their plan's values."""
    found = find_disagreements(plan, context.state.stack.flows)
    if found:
        why = "; ".join(str(one) for one in found)
        context.log.failed_check("plans", "plan_consistency", why, plan.flow_id)


def describe(plan: PlanFlow, **more: Json) -> JsonObject:
    """Return a plan in its stored form, which the API also serves."""
    return {
        "steps": [
            {
                "name": step.name,
                "dact": step.dact,
                "purpose": step.label,
                **step.status.serialize(),
                "needs": list(step.needs),
                "note": str(step.note),
                "outputs": step.outputs,
            }
            for step in plan.steps
        ],
        **show_progress(plan),
        **more,
    }


def show_progress(plan: PlanFlow) -> JsonObject:
    progress = read_progress(plan)
    remaining = [step.name for step in plan.unfinished]
    return {
        "progress": str(progress),
        **asdict(progress),
        "current_step": remaining[0] if remaining else None,
        "remaining": remaining,
    }


def revise(plan: PlanFlow, context: TurnContext, wanted: list[PlanStep], why: str) -> list[Change]:
    """Replace the remaining steps with `wanted`, but keep steps with the same flow name. Return the changes."""
    remaining = plan.unfinished
    kept: list[PlanStep] = []
    added: list[PlanStep] = []
    order: list[str] = []
    for step in wanted:
        same = next((old for old in remaining if old.dact == step.dact and old not in kept), None)
        if same is not None:
            kept.append(same)
        else:
            step.rename(free_name(step.name, (*plan.steps, *added)))
            added.append(step)
        order.append((same or step).name)
    dropped = [step for step in remaining if all(step is not old for old in kept)]
    changes = [
        Change(ChangeKind.PRUNE, (step.label,), why)
        for step in dropped
        if drop_step(context.state.stack, plan, step, why, context.now)
    ]
    if added:
        add_steps(plan, added)
        changes.append(Change(ChangeKind.EXPAND, tuple(step.label for step in added), why))
    before = [step.name for step in kept]
    if order_steps(plan, order) and [s.name for s in remaining if s in kept] != before:
        labels = tuple(step.label for step in plan.unfinished)
        changes.append(Change(ChangeKind.REORDER, labels, why))
    return changes


def free_name(name: str, steps: Iterable[PlanStep]) -> str:
    taken = {step.name for step in steps}
    names = (name if number == 1 else f"{name}_{number}" for number in count(1))
    return next(free for free in names if free not in taken)
