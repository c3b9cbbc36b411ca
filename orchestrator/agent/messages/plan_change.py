"""Change a plan as the user asks: skip a step, bring one forward (PL-2)."""

from orchestrator.agent.corrections.plans import set_back
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.changes.plan_steps import drop_step, order_steps
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL
from orchestrator.dialogue.records import PlanStep
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import PlanAction, PlanChange, Understanding
from orchestrator.plans.changes import note_revision, stack_plan


def change_plan(turn: RunningTurn, understood: Understanding) -> None:
    """Change the plan's steps as the user wants; completed steps stay."""
    if understood.plan_change is not None and understood.plan_change.action is PlanAction.ADD:
        leave_open(turn)
        return
    plan, change = turn.changes.state.stack.plan, understood.plan_change
    step = plan.step_named(change.step or "") if plan is not None and change is not None else None
    if plan is None or change is None or step is None or step.is_finished:
        _refuse(turn, plan)
    elif change.action is PlanAction.SKIP:
        others = map(plan.step_named, change.others)
        _skip(turn, plan, [step, *(one for one in others if one is not None and not one.is_finished)])
    else:
        _move(turn, plan, step, change)


def _refuse(turn: RunningTurn, plan: PlanFlow | None) -> None:
    steps = [step.label for step in plan.steps if not step.is_finished] if plan is not None else []
    turn.changes.remark(RemarkKind.NO_SUCH_STEP, steps=steps)
    leave_open(turn)


def _skip(turn: RunningTurn, plan: PlanFlow, steps: list[PlanStep]) -> None:
    state, was_active = turn.changes.state, any(_is_active(turn, step) for step in steps)
    for step in steps:
        state.ambiguity.resolve(flow_id=step.flow_id)
        state.void_approvals(step.flow_id)
        drop_step(state.stack, plan, step, "you wanted to leave it out", turn.context.now, by_user=True)
        note_revision(turn.context, plan, "edited", f"skip {step.name}")
    labels = [step.label for step in steps]
    turn.changes.remark(RemarkKind.REPLANNED, flow_id=plan.flow_id, dropped=labels, by_user=True)
    turn.changes.plans.edited = True
    _go_on(turn, started=was_active)


def _move(turn: RunningTurn, plan: PlanFlow, step: PlanStep, change: PlanChange) -> None:
    """Move a step forward; the running step goes back and asks again later."""
    waiting = [other.name for other in plan.steps if not other.is_finished and other is not step]
    place = waiting.index(change.other) if change.other in waiting else 0
    blocked = _lacks(plan, step)
    if blocked is not None:
        turn.changes.remark(RemarkKind.NO_SUCH_STEP, steps=[], step=step.label, needs=blocked.label)
        leave_open(turn)
        return
    top = turn.changes.state.stack.top
    if top is not None and top.status == AWAITING_APPROVAL and top.plan_id == plan.flow_id:
        turn.changes.state.stack.unpark(top, turn.context.now)
    active = turn.changes.state.stack.active
    if order_steps(plan, [*waiting[:place], step.name, *waiting[place:]]) and active is not None:
        set_back(turn.context, active)
    note_revision(turn.context, plan, "reorder", f"the user wants {step.name} earlier")
    steps = [other.label for other in plan.steps if not other.is_finished]
    turn.changes.remark(RemarkKind.REPLANNED, flow_id=plan.flow_id, reordered=True, by_user=True, steps=steps)
    stack_plan(turn.context, plan)
    _go_on(turn, started=True)


def _lacks(plan: PlanFlow, step: PlanStep) -> PlanStep | None:
    """Return an unfinished step that must run before this one, or None."""
    needed = (plan.step_named(name) for name in step.needs)
    return next((other for other in needed if other is not None and not other.is_finished), None)


def _is_active(turn: RunningTurn, step: PlanStep) -> bool:
    active = turn.changes.state.stack.active
    return active is None or active.flow_id == step.flow_id


def _go_on(turn: RunningTurn, *, started: bool) -> None:
    """Continue with the top flow; its question stays open, about the changed plan."""
    turn.carry_on = turn.changes.state.stack.active is not None
    turn.changes.asks_again = turn.changes.asks_again or not started
