"""Change the steps of a plan on the stack after an edit or a correction by the user."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.records import BOUND, PlanStep
from orchestrator.dialogue.slots import SlotSource, SlotValue
from orchestrator.pex.calls.consent import drop_candidate, drop_grant
from orchestrator.plans.bindings import read_bindings
from orchestrator.plans.changes import check_consistency, note_revision, stack_plan
from orchestrator.types import FlowId, new_id


def set_back(context: TurnContext, flow: BaseFlow) -> None:
    """Make the flow at work a planned step again: its question is closed, nothing is confirmed any more."""
    context.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
    context.changes.state.void_approvals(flow.flow_id)
    drop_candidate(flow)
    drop_grant(context, flow)
    flow.notes.pop(BOUND, None)
    context.changes.state.stack.hold_active(context.now)


def follow_correction(context: TurnContext, flow: BaseFlow, changed: Collection[str]) -> bool:
    """Take a corrected value of a sub-flow for the plan's too: what was looked up with the old one is looked up anew.

    What has had an effect is never repeated. Returns whether look-ups are to be made now.
    """
    plan = context.changes.state.stack.plan_of(flow)
    step = plan.step_of(flow.flow_id) if plan is not None else None
    if plan is None or step is None:
        return False
    bindings = read_bindings(step)
    names = {bindings[slot].name for slot in changed if slot in bindings and bindings[slot].step is None}
    for slot in changed:
        name = bindings[slot].name if slot in bindings and bindings[slot].step is None else ""
        if name in plan.spec.slots:
            held = flow.slots[slot]
            plan.slots[name] = SlotValue(held.value, SlotSource.USER, held.turn_id, False, held.text)
            for dependent in plan.dependents(name):
                plan.clear(dependent)
    check_consistency(context, plan)
    stale = _find_stale(context, plan, names & plan.spec.slots.keys())
    if not stale:
        return False
    _look_up_anew(context, plan, flow, stale)
    context.changes.plans.in_doubt = True
    note_revision(context, plan, "expand", f"{', '.join(sorted(names))} was corrected")
    return True


def _find_stale(context: TurnContext, plan: PlanFlow, names: Collection[str]) -> list[PlanStep]:
    """Finished steps that used one of the plan's values, or what such a step found, and changed nothing."""
    acted = {note.flow_id for note in context.changes.state.effects}
    stale: list[PlanStep] = []
    for step in plan.steps:
        uses = read_bindings(step).values()
        old = any(b.name in names if b.step is None else b.step in {s.name for s in stale} for b in uses)
        if old and step.is_done and step.flow_id not in acted:
            stale.append(step)
    return stale


def _look_up_anew(context: TurnContext, plan: PlanFlow, flow: BaseFlow, stale: list[PlanStep]) -> None:
    """Put the stale steps before the one at work, which waits for what they find."""
    for held_name in [name for name, held in flow.slots.items() if held.source is SlotSource.INHERITED]:
        flow.clear(held_name)
    set_back(context, flow)
    place = next(i for i, step in enumerate(plan.steps) if step.flow_id == flow.flow_id)
    fresh = [step.carried_out_by(FlowId(new_id("flow")), step.dact) for step in stale]
    for step in fresh:
        step.outputs = {}
    plan.steps[place:place] = fresh
    plan.revision += 1
    stack_plan(context, plan)
