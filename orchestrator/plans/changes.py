"""What a replanning check can decide: a closed set (PL-2), and how it is kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.plan import add_steps, drop_step, order_steps, read_progress
from orchestrator.dialogue.plan_step import PlanStep
from orchestrator.turns.plan import PlanRevision
from orchestrator.types import Json, JsonObject


class Outcome(StrEnum):
    CONTINUE = "continue"
    REORDER = "reorder"
    EXPAND = "expand"
    PRUNE = "prune"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a plan. `steps`: labels of the steps added, given up, or in their new order.

    `matters`: the user should be told.
    """

    outcome: Outcome
    steps: tuple[str, ...] = ()
    why: str = ""
    matters: bool = True


def note_revision(context: TurnContext, plan: PlanFlow, outcome: str, why: str = "", **more: Json) -> None:
    """Keep a revision of a plan, with the steps as they are now."""
    plan.noted += 1
    context.changes.plan_log.append(
        PlanRevision(plan.flow_id, plan.noted, outcome, why, describe(plan, **more))
    )
    context.log.event("plan", plan_id=plan.flow_id, outcome=outcome, why=why, **show_progress(plan))


def note_pushed(context: TurnContext, flows: list[BaseFlow]) -> None:
    """Tell that steps of a plan have become flows on the stack."""
    for flow in flows:
        context.log.event("flow_pushed", dact=flow.dact, flow_id=flow.flow_id, plan_id=flow.plan_id)


def describe(plan: PlanFlow, **more: Json) -> JsonObject:
    """A plan as it is kept and shown."""
    return {
        "steps": [
            {
                "name": step.name,
                "dact": step.dact,
                "purpose": step.label,
                "state": step.state.value,
                "reason": None if step.reason is None else step.reason.value,
                "needs": list(step.needs),
                "note": step.note,
                "outputs": step.outputs,
            }
            for step in plan.steps
        ],
        **show_progress(plan),
        **more,
    }


def show_progress(plan: PlanFlow) -> JsonObject:
    progress = read_progress(plan)
    return {
        "progress": str(progress),
        "completed": progress.completed,
        "total": progress.total,
        "failed": progress.failed,
        "remaining": [step.name for step in plan.steps if not step.is_finished],
    }


def revise(plan: PlanFlow, context: TurnContext, wanted: list[PlanStep], why: str) -> list[Change]:
    """Make the remaining steps the wanted ones. A step that is there already stays what it is."""
    remaining = [step for step in plan.steps if not step.is_finished]
    kept: list[PlanStep] = []
    added: list[PlanStep] = []
    order: list[str] = []
    for step in wanted:
        same = next((old for old in remaining if old.dact == step.dact and old not in kept), None)
        if same is not None:
            kept.append(same)
        else:
            step.name = _free_name(plan, step.name, added)
            added.append(step)
        order.append((same or step).name)
    dropped = [step for step in remaining if all(step is not old for old in kept)]
    changes = [
        Change(Outcome.PRUNE, (step.label,), why)
        for step in dropped
        if drop_step(context.changes.state.stack, plan, step, why, context.now)
    ]
    if added:
        add_steps(plan, added)
        changes.append(Change(Outcome.EXPAND, tuple(step.label for step in added), why))
    before = [step.name for step in kept]
    if order_steps(plan, order) and [s.name for s in remaining if s in kept] != before:
        labels = tuple(step.label for step in plan.steps if not step.is_finished)
        changes.append(Change(Outcome.REORDER, labels, why))
    return changes


def _free_name(plan: PlanFlow, name: str, added: list[PlanStep]) -> str:
    taken = {step.name for step in (*plan.steps, *added)}
    names = (name if number == 1 else f"{name}_{number}" for number in range(1, len(taken) + 2))
    return next(free for free in names if free not in taken)
