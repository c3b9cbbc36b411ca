"""Declared plans: the steps for a request, and the rules that prune them (PL-1, PL-2)."""

from __future__ import annotations

from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.plan_steps import drop_step, take_for_step
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.records import ANSWERED, EffectNote, PlanStep
from orchestrator.dialogue.specification import FlowSpec, RecipeStep
from orchestrator.plans.bindings import holds, read_bindings, resolve, settle
from orchestrator.plans.changes import Change, ChangeKind
from orchestrator.types import FlowId, JsonObject, new_id, same_value


def follows_recipe(plan: PlanFlow) -> bool:
    return bool(plan.spec.recipe) and not plan.by_model


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
    """Return the declared steps that can be added to the plan, or [] if a model chose the plan's steps."""
    if plan.by_model:
        return []
    return [
        declared
        for declared in plan.spec.recipe
        if plan.step_named(declared.name) is None and not fails(plan, declared)
    ]


def fails(plan: PlanFlow, declared: RecipeStep) -> bool:
    """Return whether a condition of the step is known to be false."""
    return any(holds(plan, condition) is False for condition in declared.when)


def declared_step(plan: PlanFlow, name: str) -> RecipeStep | None:
    return next((declared for declared in plan.spec.recipe if declared.name == name), None)


def find_missing(plan: PlanFlow) -> list[str]:
    """Return the labels of required steps that were not done, except steps that the user dropped."""
    wanted = {step.name for step in plan.steps} | {declared.name for declared in due_steps(plan)}
    in_order = dict.fromkeys(one.name for one in (*plan.spec.recipe, *plan.steps))
    return [label for name in in_order if name in wanted and (label := _lacking(plan, name))]


def _lacking(plan: PlanFlow, name: str) -> str:
    step, declared = plan.step_named(name), declared_step(plan, name)
    if step is None:
        return "" if declared is None or declared.optional else declared.purpose or name.replace("_", " ")
    needed = [one for name in step.needs if (one := plan.step_named(name)) is not None]
    follows = plan.by_model or any(one.was_dropped_by_user for one in needed)
    given_up = step.was_dropped_by_user or (step.was_never_begun and follows)
    return "" if step.optional or step.is_done or given_up else step.label


def apply_rules(plan: PlanFlow, context: TurnContext) -> list[Change]:
    """Prune steps that are done or answered, that need a failed step, or whose conditions fail. Return the changes."""
    changes: list[Change] = []
    while (change := _adopt(plan, context) or _prune(plan, context)) is not None:
        changes.append(change)
    return changes


def _adopt(plan: PlanFlow, context: TurnContext) -> Change | None:
    """Mark a step as answered if an earlier task already made its call with the same values (PL-7).

    Tell the user that the call is not repeated. Return the change, or None if there is no such step.
    """
    for step in plan.steps:
        done = _find_done(plan, step, context) if step.is_planned else None
        if done is None:
            continue
        flow, note = done
        take_for_step(context.state.stack, plan, step, flow, context.now)
        settle(plan, step)
        _describe_sources(plan, step, context, {**flow.values(), **flow.outputs})
        context.tell(NoticeKind.STAYS, flow_id=plan.flow_id, done=[note.summary], step=step.label)
        return Change(ChangeKind.PRUNE, (step.label,), ANSWERED, matters=False)
    return None


def _find_done(plan: PlanFlow, step: PlanStep, context: TurnContext) -> tuple[BaseFlow, EffectNote] | None:
    """Return a completed flow outside the plan that did the step, with the note of its intact side effect, or None."""
    spec, state = context.world.domain.flows[step.dact].spec, context.state
    own = {name for name, binding in read_bindings(step).items() if binding.step is None}
    known = {name: value for name, value in resolve(plan, step).items() if name in own}
    if not known or not known.keys() >= spec.required:
        return None
    done = {flow.flow_id: flow for flow in state.completed}
    for place, note in reversed([*enumerate(state.effects)]):
        flow = done.get(note.flow_id)
        if flow is None or flow.dact != step.dact or not note.is_done or plan.step_of(flow.flow_id):
            continue
        since = [one for one in state.effects[place + 1 :] if note.result.items() <= one.arguments.items()]
        agrees = all(same_value(flow.value(name), value) for name, value in known.items())
        if agrees and not any(_changes(done.get(one.flow_id), spec) for one in since):
            return flow, note
    return None


def _changes(later: BaseFlow | None, spec: FlowSpec) -> bool:
    """Return whether the task `later` may have changed the result of a task of type `spec`.

    It may if it has a slot that accepts the values of a slot of `spec`: a rebooking may, added baggage may
    not. An unknown task (None) may.
    """
    slots = later.spec.slots.values() if later is not None else spec.slots.values()
    return any(slot.takes_what(own) for slot in slots for own in spec.slots.values())


def _describe_sources(plan: PlanFlow, step: PlanStep, context: TurnContext, values: JsonObject) -> None:
    """Copy an adopted flow's values to the slots of the steps that would have provided these values."""
    for slot, binding in read_bindings(step).items():
        giver = plan.step_named(binding.step) if binding.step is not None else None
        if giver is None or slot not in values:
            continue
        if binding.name in context.world.domain.flows[giver.dact].spec.slots:
            giver.bind(binding.name, {"value": values[slot]})


def _prune(plan: PlanFlow, context: TurnContext) -> Change | None:
    for step in plan.steps:
        if not step.is_planned and not _is_waiting(step, context):
            continue
        change = _why_prune(plan, step, context)
        if change is not None:
            drop_step(context.state.stack, plan, step, change.why, context.now)
            return change
    return None


def _is_waiting(step: PlanStep, context: TurnContext) -> bool:
    active = context.state.stack.active
    return active is not None and active.flow_id == step.flow_id and not active.progress.begun


def _why_prune(plan: PlanFlow, step: PlanStep, context: TurnContext) -> Change | None:
    failed = next((name for name in step.needs if _has_failed(plan, name)), None)
    if failed is not None:
        needed = plan.step_named(failed)
        why = f"it needs “{needed.label if needed else failed}”, which was not done"
        return Change(ChangeKind.PRUNE, (step.label,), why)
    declared = declared_step(plan, step.name)
    if declared is not None and fails(plan, declared):
        return Change(ChangeKind.PRUNE, (step.label,), declared.otherwise or "it is not needed")
    answer = _find_answer(plan, step, context)
    if answer is None:
        return None
    step.keep_outputs(answer.outputs)
    return Change(ChangeKind.PRUNE, (step.label,), ANSWERED, matters=False)


def _has_failed(plan: PlanFlow, name: str) -> bool:
    step = plan.step_named(name)
    return step is not None and step.is_finished and not step.is_done


def _find_answer(plan: PlanFlow, step: PlanStep, context: TurnContext) -> BaseFlow | None:
    """Return a completed flow with the step's task and values but no side effect, or None."""
    values = resolve(plan, step)
    if len(values) < len(step.slots) or not values:
        return None
    done = [*context.state.completed, *(flow for flow in context.changes.finished if flow.outputs)]
    acted = {note.flow_id for note in context.state.effects}
    for flow in reversed(done):
        same = flow.dact == step.dact and flow.spec.outputs and flow.outputs and flow.flow_id not in acted
        if same and all(same_value(flow.value(name), value) for name, value in values.items()):
            return flow
    return None


def count_steps(plan: PlanFlow) -> int:
    """Return the number of steps that count toward `max_sub_flows`: all except steps dropped before they began."""
    return sum(not step.was_never_begun for step in plan.steps)
