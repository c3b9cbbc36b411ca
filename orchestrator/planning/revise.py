"""From the steps that a model wants to the least change of the plan: reorder, expand, prune (PL-2)."""

from __future__ import annotations

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.plan_stacking import add_steps, drop_step, order_steps
from orchestrator.dialogue.plan_step import PlanStep
from orchestrator.planning.changes import Change, Outcome
from orchestrator.world.world import World


def revise(plan: PlanFlow, world: World, wanted: list[PlanStep], why: str) -> list[Change]:
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
        if drop_step(world.state.stack, plan, step, why, world.now)
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
