"""Correct completed flows and plans: find affected side effects, and run flows again (IR-4, PL-7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from orchestrator.agent.tasks import enter
from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.correction import reopen
from orchestrator.dialogue.changes.plan_steps import add_steps
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.records import EffectNote, PlanStep
from orchestrator.dialogue.slots import SlotSource, SlotValue
from orchestrator.pex.calls.consent import drop_consent
from orchestrator.plans.bindings import read_bindings
from orchestrator.plans.changes import check_consistency, note_revision, stack_plan
from orchestrator.plans.recipe import apply_rules
from orchestrator.types import FlowId, new_id


def plan_of(context: TurnContext, flow: BaseFlow) -> PlanFlow | None:
    """Return the flow itself if it is a plan; otherwise, return the plan that contains it, or None."""
    if isinstance(flow, PlanFlow):
        return flow
    known = [*reversed(context.state.stack.flows), *reversed(context.state.completed)]
    plans = [one for one in known if isinstance(one, PlanFlow)]
    return next((one for one in plans if one.flow_id == flow.plan_id or one.step_of(flow.flow_id)), None)


def effects_made_from(context: TurnContext, flow: BaseFlow, names: Collection[str]) -> list[EffectNote]:
    """List committed effects of the flow and its plan's steps that used the slots `names`.

    All effects of a completed flow are listed, because the flow would repeat all of them.
    """
    is_over = context.state.stack.get(flow.flow_id) is None
    plan = plan_of(context, flow)
    steps = effects_of(context, plan, set(bound_names(plan, flow, names).values())) if plan else []
    own = [
        note
        for note in context.state.effects
        if note.flow_id == flow.flow_id
        and note.stands
        and (is_over or set(names) & note.slots.keys())
        and note not in steps
    ]
    return [*own, *steps]


def reopen_plan(context: TurnContext, ended: PlanFlow) -> PlanFlow:
    plan = reopen_flow(context, ended)
    assert isinstance(plan, PlanFlow)
    plan.take_up(ended)
    return plan


def reopen_flow(context: TurnContext, flow: BaseFlow) -> BaseFlow:
    """Push a new flow with the values from a completed flow.

    Return the flow of this type that is now on the stack.
    """
    fresh = reopen(flow, context.now)
    context.state.stack.push(fresh, context.now, reason=f"the user corrected {flow.dact}")
    enter(context, fresh)
    return context.state.stack.find(flow.dact) or fresh


def set_back(context: TurnContext, flow: BaseFlow) -> None:
    """Turn the running flow back into a planned step.

    Close its question, and void its approvals and confirmation.
    """
    context.state.ambiguity.resolve(flow_id=flow.flow_id)
    context.state.void_approvals(flow.flow_id)
    drop_consent(context, flow)
    flow.progress.set_back()
    context.state.stack.hold_active(context.now)


def bound_names(plan: PlanFlow, flow: BaseFlow, slots: Collection[str]) -> dict[str, str]:
    """Map the given slots of `flow`, the plan or one of its steps, to the plan's slots.

    Slots whose values don't come from the plan's slots are omitted.
    """
    if flow is plan:
        return {slot: slot for slot in slots}
    step = plan.step_of(flow.flow_id)
    bindings = read_bindings(step) if step is not None else {}
    names = {slot: bindings[slot].name for slot in slots if slot in bindings and bindings[slot].step is None}
    return {slot: name for slot, name in names.items() if name in plan.spec.slots}


def find_users(plan: PlanFlow, names: Collection[str], *, again: Collection[FlowId] = ()) -> list[PlanStep]:
    """List the completed steps to repeat.

    These are the steps that used the plan's slots `names`, the steps of the flows in `again`, and all steps
    that used results of such steps.
    """
    users: list[PlanStep] = []
    for step in _done_steps(plan):
        uses = read_bindings(step).values()
        old = any(b.name in names if b.step is None else b.step in {s.name for s in users} for b in uses)
        if old or step.flow_id in again:
            users.append(step)
    return users


def _done_steps(plan: PlanFlow) -> list[PlanStep]:
    """List the completed steps, without those that a later step of the same name repeats."""
    return [step for step in plan.steps if step.is_done and plan.step_named(step.name) is step]


def effects_of(context: TurnContext, plan: PlanFlow, names: Collection[str]) -> list[EffectNote]:
    """List committed effects of steps that used the plan's slots `names` directly (RT-12).

    Effects that used looked-up values are omitted. They may still match, so they are compared after the next
    lookup.
    """
    users = {
        step.flow_id
        for step in _done_steps(plan)
        if any(b.step is None and b.name in names for b in read_bindings(step).values())
    }
    return [note for note in context.state.effects if note.flow_id in users and note.stands]


def follow_correction(
    context: TurnContext, plan: PlanFlow, values: Mapping[str, SlotValue], *, redo: Collection[FlowId] = ()
) -> bool:
    """Apply corrected values to a plan, and repeat the lookups that used the old values (PL-7).

    `redo`: IDs of flows whose effects the user wants to repeat. Return False if the plan has ended or not
    begun.
    """
    for name, held in values.items():
        plan.follow(name, held)
        for dependent in plan.dependents(name):
            if dependent not in values:
                plan.clear(dependent)
    if plan.is_finished or not plan.rounds:
        return False
    check_consistency(context, plan)
    acted = {note.flow_id for note in context.state.effects if note.stands}
    users = find_users(plan, values, again=redo)
    stale = [step for step in users if step.flow_id not in acted or step.flow_id in redo]
    at_work = context.state.stack.active
    if at_work is not None and at_work.plan_id == plan.flow_id:
        corrected = bound_names(plan, at_work, at_work.slots.keys())
        for name, held in [*at_work.slots.items()]:
            if held.source is SlotSource.INHERITED or corrected.get(name) in values:
                at_work.clear(name)
        set_back(context, at_work)
    fresh = [replace(step.carried_out_by(FlowId(new_id("flow")), step.dact), outputs={}) for step in stale]
    add_steps(plan, fresh, after=())
    for change in apply_rules(plan, context):
        note_revision(context, plan, change.kind.value, change.why)
    stack_plan(context, plan)
    if fresh:
        context.changes.plans.in_doubt = True
        note_revision(
            context, plan, "expand", f"the user corrected {', '.join(sorted(values)) or 'a completed step'}"
        )
    return True
