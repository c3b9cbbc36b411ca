"""Where a step's values come from: the plan's slots and what earlier steps found (FS-7)."""

from __future__ import annotations

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.plan_step import PlanStep
from orchestrator.dialogue.specification import Binding, Condition, FlowSpec
from orchestrator.types import Json, JsonObject


def look_up(plan: PlanFlow, binding: Binding) -> Json:
    """The value of a binding now; None when it is not known."""
    if not binding.name:
        return binding.value
    if binding.step is None:
        return plan.value(binding.name)
    step = plan.step_named(binding.step)
    return None if step is None else step.outputs.get(binding.name)


def read_bindings(step: PlanStep) -> dict[str, Binding]:
    return {slot: Binding.read(body) for slot, body in step.slots.items()}


def resolve(plan: PlanFlow, step: PlanStep) -> JsonObject:
    """The values known by now for a step's slots."""
    found = {slot: look_up(plan, binding) for slot, binding in read_bindings(step).items()}
    return {slot: value for slot, value in found.items() if value is not None}


def inherit(plan: PlanFlow, step: PlanStep, spec: FlowSpec) -> JsonObject:
    """Declared inputs that nobody bound, from the steps that this one needs, the latest first (FS-7)."""
    givers = [other for other in reversed(plan.steps) if other.name in step.needs and other.outputs]
    values: JsonObject = {}
    for name in spec.inputs:
        if name not in step.slots:
            giver = next((other for other in givers if other.outputs.get(name) is not None), None)
            if giver is not None:
                values[name] = giver.outputs[name]
    return values


def holds(plan: PlanFlow, condition: Condition) -> bool | None:
    """Whether a condition holds; None as long as the step that decides it has not ended."""
    binding = condition.binding
    if binding.step is not None:
        step = plan.step_named(binding.step)
        if step is None or not step.is_finished:
            return None
    return bool(look_up(plan, binding)) is not condition.negated
