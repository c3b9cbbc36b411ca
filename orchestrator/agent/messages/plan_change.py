"""What users may change about a plan by talking: skip a step, another order; and corrections that reach back (IR-4).

The replanning check is in `plans`.
"""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.agent.messages.digressions import leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL
from orchestrator.dialogue.plan import current_plan, drop_step, order_steps, stack_steps
from orchestrator.dialogue.plan_step import BOUND, PlanStep
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.slots import SlotSource, SlotValue
from orchestrator.dialogue.understanding import PlanAction, PlanChange, Understanding
from orchestrator.pex.calls.approval import drop_grant
from orchestrator.pex.calls.candidate import drop_candidate
from orchestrator.plans.bindings import read_bindings
from orchestrator.plans.changes import note_pushed, note_revision
from orchestrator.types import FlowId, new_id


def change_plan(turn: RunningTurn, understood: Understanding) -> None:
    """Do what the user wants with the plan's steps; what is done stays done."""
    plan, change = current_plan(turn.changes.state.stack), understood.plan_change
    step = plan.step_named(change.step or "") if plan is not None and change is not None else None
    if plan is None or change is None or step is None or step.is_finished:
        _refuse(turn, plan)
    elif change.action is PlanAction.SKIP:
        _skip(turn, plan, step)
    else:
        _move(turn, plan, step, change)


def _refuse(turn: RunningTurn, plan: PlanFlow | None) -> None:
    steps = [step.label for step in plan.steps if not step.is_finished] if plan is not None else []
    turn.changes.remark(RemarkKind.NO_SUCH_STEP, steps=steps)
    leave_open(turn)


def _skip(turn: RunningTurn, plan: PlanFlow, step: PlanStep) -> None:
    was_active = _is_active(turn, step)
    turn.changes.state.ambiguity.resolve(flow_id=step.flow_id)
    turn.changes.state.void_approvals(step.flow_id)
    drop_step(
        turn.changes.state.stack, plan, step, "you wanted to leave it out", turn.context.now, by_user=True
    )
    note_revision(turn.context, plan, "edited", f"skip {step.name}")
    turn.changes.remark(RemarkKind.REPLANNED, flow_id=plan.flow_id, dropped=[step.label], by_user=True)
    turn.plan.edited = True
    _go_on(turn, started=was_active)


def _move(turn: RunningTurn, plan: PlanFlow, step: PlanStep, change: PlanChange) -> None:
    """Bring a step forward; the one at work steps back and asks again later."""
    waiting = [other.name for other in plan.steps if not other.is_finished and other is not step]
    place = waiting.index(change.other) if change.other in waiting else 0
    blocked = _lacks(plan, step)
    if blocked is not None:
        turn.changes.remark(RemarkKind.NO_SUCH_STEP, steps=[], step=step.label, needs=blocked.label)
        leave_open(turn)
        return
    top = turn.changes.state.stack.top
    if top is not None and top.standing == AWAITING_APPROVAL and top.plan_id == plan.flow_id:
        turn.changes.state.stack.unpark(top, turn.context.now)
    active = turn.changes.state.stack.active
    if order_steps(plan, [*waiting[:place], step.name, *waiting[place:]]) and active is not None:
        set_back(turn, active)
    note_revision(turn.context, plan, "reorder", f"the user wants {step.name} earlier")
    steps = [other.label for other in plan.steps if not other.is_finished]
    turn.changes.remark(RemarkKind.REPLANNED, flow_id=plan.flow_id, reordered=True, by_user=True, steps=steps)
    _stack_steps(turn, plan)
    _go_on(turn, started=True)


def _lacks(plan: PlanFlow, step: PlanStep) -> PlanStep | None:
    """A step that must come before this one and has not ended."""
    needed = (plan.step_named(name) for name in step.needs)
    return next((other for other in needed if other is not None and not other.is_finished), None)


def set_back(turn: RunningTurn, flow: BaseFlow) -> None:
    """Make the flow at work a planned step again: its question is closed, nothing is confirmed any more."""
    turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
    turn.changes.state.void_approvals(flow.flow_id)
    drop_candidate(flow)
    drop_grant(turn.context, flow)
    flow.notes.pop(BOUND, None)
    turn.changes.state.stack.hold_active(turn.context.now)


def _is_active(turn: RunningTurn, step: PlanStep) -> bool:
    active = turn.changes.state.stack.active
    return active is None or active.flow_id == step.flow_id


def _go_on(turn: RunningTurn, *, started: bool) -> None:
    """Carry on with what is on top; a question that was open stays open."""
    if started:
        turn.carry_on = turn.changes.state.stack.active is not None
    else:
        turn.changes.asks_again = True
        turn.carry_on = False


def follow_correction(turn: RunningTurn, flow: BaseFlow, changed: Collection[str]) -> None:
    """A corrected value of a sub-flow is the plan's too: what was looked up with the old one is looked up anew.

    What has had an effect is never repeated.
    """
    plan = turn.changes.state.stack.plan_of(flow)
    step = plan.step_of(flow.flow_id) if plan is not None else None
    if plan is None or step is None:
        return
    bindings = read_bindings(step)
    names = {bindings[slot].name for slot in changed if slot in bindings and bindings[slot].step is None}
    for slot in changed:
        name = bindings[slot].name if slot in bindings and bindings[slot].step is None else ""
        if name in plan.spec.slots:
            held = flow.slots[slot]
            plan.slots[name] = SlotValue(held.value, SlotSource.USER, held.turn_id, False, held.text)
            for dependent in plan.dependents(name):
                plan.clear(dependent)
    stale = _find_stale(turn, plan, names & plan.spec.slots.keys())
    if not stale:
        return
    _look_up_anew(turn, plan, flow, stale)
    turn.plan.in_doubt = True
    note_revision(turn.context, plan, "expand", f"{', '.join(sorted(names))} was corrected")


def _find_stale(turn: RunningTurn, plan: PlanFlow, names: Collection[str]) -> list[PlanStep]:
    """Finished steps that used one of the plan's values, or what such a step found, and changed nothing."""
    acted = {note.flow_id for note in turn.changes.state.effects}
    stale: list[PlanStep] = []
    for step in plan.steps:
        uses = read_bindings(step).values()
        old = any(b.name in names if b.step is None else b.step in {s.name for s in stale} for b in uses)
        if old and step.is_done and step.flow_id not in acted:
            stale.append(step)
    return stale


def _look_up_anew(turn: RunningTurn, plan: PlanFlow, flow: BaseFlow, stale: list[PlanStep]) -> None:
    """Put the stale steps before the one at work, which waits for what they find."""
    for held_name in [name for name, held in flow.slots.items() if held.source is SlotSource.INHERITED]:
        flow.clear(held_name)
    set_back(turn, flow)
    place = next(i for i, step in enumerate(plan.steps) if step.flow_id == flow.flow_id)
    fresh = [step.carried_out_by(FlowId(new_id("flow")), step.dact) for step in stale]
    for step in fresh:
        step.outputs = {}
    plan.steps[place:place] = fresh
    plan.revision += 1
    _stack_steps(turn, plan)
    turn.carry_on = True


def _stack_steps(turn: RunningTurn, plan: PlanFlow) -> None:
    context = turn.context
    note_pushed(context, stack_steps(turn.changes.state.stack, plan, context.world.domain.flows, context.now))
