"""Resolve the values that a plan binds to its steps, and compare them with flows and side effects (FS-7, PL-1)."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.records import EffectNote, PlanStep
from orchestrator.dialogue.specification import Binding, Condition, FlowSpec
from orchestrator.types import FlowId, Json, JsonObject, same_value


def look_up(plan: PlanFlow, binding: Binding) -> Json:
    """Return a binding's current value, or None if it is unknown."""
    if not binding.name:
        return binding.value
    if binding.step is None:
        return plan.value(binding.name)
    step = plan.step_named(binding.step)
    return None if step is None else step.outputs.get(binding.name)


def read_bindings(step: PlanStep) -> dict[str, Binding]:
    return {slot: Binding.read(body) for slot, body in step.slots.items()}


def resolve(plan: PlanFlow, step: PlanStep) -> JsonObject:
    """Return the known values of a step's slots, by slot."""
    found = {slot: look_up(plan, binding) for slot, binding in read_bindings(step).items()}
    return {slot: value for slot, value in found.items() if value is not None}


def inherit(plan: PlanFlow, step: PlanStep, spec: FlowSpec) -> JsonObject:
    """Return values for a step's unbound inputs, from the outputs of the steps it needs.

    Later steps take precedence (FS-7).
    """
    values: JsonObject = {}
    for giver in plan.steps:
        if giver.name in step.needs:
            found = {name: giver.outputs.get(name) for name in spec.inputs if name not in step.slots}
            values |= {name: value for name, value in found.items() if value is not None}
    return values


def holds(plan: PlanFlow, condition: Condition) -> bool | None:
    """Return whether a condition holds, or None if the step that provides its value has not ended yet."""
    binding = condition.binding
    if binding.step is not None:
        step = plan.step_named(binding.step)
        if step is None or not step.is_finished:
            return None
    return bool(look_up(plan, binding)) is not condition.negated


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A slot or condition of a step whose value `held` differs from the plan's value `wanted`."""

    step: str
    slot: str
    held: Json
    wanted: Json

    def __str__(self) -> str:
        return f"{self.step}: {self.slot} is {self.held!r}, and the plan has {self.wanted!r}"


def agrees(plan: PlanFlow, step: PlanStep, flow: BaseFlow) -> bool:
    """Return whether the plan can adopt a flow as the step: all values of the flow equal the plan's values (PL-7)."""
    known = resolve(plan, step)
    return bool(flow.slots) and all(
        name in known and same_value(held.value, known[name]) for name, held in flow.slots.items()
    )


def find_disagreements(plan: PlanFlow, flows: Iterable[BaseFlow]) -> list[Disagreement]:
    """Return the steps' values that differ from the plan's values. A missing value is not a difference.

    Differences arise when a flow is adopted, or when a correction comes after a step ran.
    """
    known = {flow.flow_id: flow for flow in flows}
    return [
        Disagreement(step.name, slot, held, wanted)
        for step in plan.steps
        if (flow := known.get(step.flow_id)) is not None
        for slot, wanted in resolve(plan, step).items()
        if (held := flow.value(slot)) is not None and not same_value(held, wanted)
    ]


def settle(plan: PlanFlow, step: PlanStep) -> None:
    """Record that a step's side effect stays, even if it does not fit the plan's current values."""
    rules = {str(rule): holds(plan, rule) for rule in _rules_of(plan, step)}
    plan.settle(step.flow_id, resolve(plan, step) | rules)


def find_outdated(plan: PlanFlow, effects: Iterable[EffectNote]) -> dict[FlowId, list[Disagreement]]:
    """Return how committed calls disagree with the plan's current values or conditions, by the ID of the step's flow.

    Disagreements that already existed when the side effect was accepted (`settle`) are ignored.
    """
    settled = plan.settled
    found: dict[FlowId, list[Disagreement]] = {}
    for note in effects:
        step = plan.step_of(note.flow_id)
        if step is None or not note.stands or plan.step_named(step.name) is not step:
            continue
        given, held = settled.get(step.flow_id, {}), note.slots
        differing = [
            Disagreement(step.name, slot, held[slot], wanted)
            for slot, wanted in resolve(plan, step).items()
            if held.get(slot) is not None
            and not same_value(held[slot], wanted)
            and same_value(held[slot], given.get(slot, held[slot]))
        ]
        differing += [
            Disagreement(step.name, str(rule), True, False)
            for rule in _rules_of(plan, step)
            if holds(plan, rule) is False and given.get(str(rule)) is not False
        ]
        if differing:
            found[step.flow_id] = differing
    return found


def _rules_of(plan: PlanFlow, step: PlanStep) -> tuple[Condition, ...]:
    return next((declared.when for declared in plan.spec.recipe if declared.name == step.name), ())
