"""Declared plans: their steps as they apply to one request (PL-1). No model is asked."""

from __future__ import annotations

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.plan_step import PlanStep
from orchestrator.dialogue.specification import RecipeStep
from orchestrator.planning.bindings import holds
from orchestrator.types import FlowId, new_id

BY_MODEL = "by_model"
"""The note of a plan whose steps a model chose: what is declared does not join it, and what the model
gave up before it was begun is not missed."""


def make_step(declared: RecipeStep) -> PlanStep:
    return PlanStep(
        flow_id=FlowId(new_id("flow")),
        dact=declared.dact,
        name=declared.name,
        purpose=declared.purpose,
        slots={slot: binding.serialize() for slot, binding in declared.slots.items()},
        needs=declared.needs,
        optional=declared.optional,
        tell=declared.tell,
    )


def due_steps(plan: PlanFlow) -> list[RecipeStep]:
    """Declared steps that should be part of the plan by now and are not; none where a model made the plan."""
    if plan.notes.get(BY_MODEL):
        return []
    return [
        declared
        for declared in plan.spec.recipe
        if plan.step_named(declared.name) is None
        and all(holds(plan, condition) for condition in declared.joins_when)
        and not fails(plan, declared)
    ]


def fails(plan: PlanFlow, declared: RecipeStep) -> bool:
    """Whether a condition of the step is known not to hold."""
    return any(holds(plan, condition) is False for condition in declared.when)


def declared_step(plan: PlanFlow, name: str) -> RecipeStep | None:
    return next((declared for declared in plan.spec.recipe if declared.name == name), None)


def find_missing(plan: PlanFlow) -> list[str]:
    """Labels of what was wanted and not done; what the user gave up is not wanted any more."""
    wanted = {step.name for step in plan.steps} | {declared.name for declared in due_steps(plan)}
    return [label for name in _in_order(plan, wanted) if (label := _lacking(plan, name))]


def _in_order(plan: PlanFlow, names: set[str]) -> list[str]:
    known = [declared.name for declared in plan.spec.recipe] + [step.name for step in plan.steps]
    return [name for name in dict.fromkeys(known) if name in names]


def _lacking(plan: PlanFlow, name: str) -> str:
    step, declared = plan.step_named(name), declared_step(plan, name)
    if step is None:
        return "" if declared is None or declared.optional else declared.purpose or name.replace("_", " ")
    given_up = step.was_dropped_by_user or (step.was_never_begun and plan.notes.get(BY_MODEL))
    return "" if step.optional or step.is_done or given_up else step.label
