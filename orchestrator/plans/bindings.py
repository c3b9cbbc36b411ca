"""Gives a step's values: from the plan's slots and from what earlier steps found (FS-7)."""

from __future__ import annotations

from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.specification import Binding, Condition, FlowSpec
from orchestrator.types import Json, JsonObject


def look_up(plan: PlanFlow, binding: Binding) -> Json:
    """Give the value of a binding now; None when it is not known."""
    if not binding.name:
        return binding.value
    if binding.step is None:
        return plan.value(binding.name)
    step = plan.step_named(binding.step)
    return None if step is None else step.outputs.get(binding.name)


def read_bindings(step: PlanStep) -> dict[str, Binding]:
    return {slot: Binding.read(body) for slot, body in step.slots.items()}


def resolve(plan: PlanFlow, step: PlanStep) -> JsonObject:
    """Give the values known by now for a step's slots."""
    found = {slot: look_up(plan, binding) for slot, binding in read_bindings(step).items()}
    return {slot: value for slot, value in found.items() if value is not None}


def inherit(plan: PlanFlow, step: PlanStep, spec: FlowSpec) -> JsonObject:
    """Take declared inputs that nobody bound from the steps that this one needs, the latest first (FS-7)."""
    values: JsonObject = {}
    for giver in plan.steps:
        if giver.name in step.needs:
            found = {name: giver.outputs.get(name) for name in spec.inputs if name not in step.slots}
            values |= {name: value for name, value in found.items() if value is not None}
    return values


def holds(plan: PlanFlow, condition: Condition) -> bool | None:
    """Say whether a condition holds; None as long as the step that decides it has not ended."""
    binding = condition.binding
    if binding.step is not None:
        step = plan.step_named(binding.step)
        if step is None or not step.is_finished:
            return None
    return bool(look_up(plan, binding)) is not condition.negated
