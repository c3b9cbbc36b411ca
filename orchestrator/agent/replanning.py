"""Update a plan between two PEX runs: store step results, and replan (AG-2, PL-2)."""

from collections.abc import Sequence

from orchestrator.agent.corrections.settling import ask_about_outdated
from orchestrator.agent.tasks import update_stack
from orchestrator.context import TurnContext
from orchestrator.dialogue.consent import read_candidate
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL, FlowState
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.slots import SlotSource
from orchestrator.plans.bindings import inherit, resolve, settle
from orchestrator.plans.changes import Change, ChangeKind, note_revision, stack_plan
from orchestrator.plans.planner import Planner
from orchestrator.telemetry import SignalType


async def update_plan(context: TurnContext, planner: Planner, plan: PlanFlow) -> bool:
    """Record finished steps and replan if needed. Return True if the plan continues without the user."""
    noted = context.changes.plans
    own = [
        flow
        for flow in context.changes.finished[noted.seen :]
        if flow.plan_id == plan.flow_id and plan.step_of(flow.flow_id) is not None
    ]
    noted.seen = len(context.changes.finished)
    for flow in own:
        _take_in(context, plan, flow)
    if not plan.rounds:
        return False
    due = bool(own or noted.edited or noted.in_doubt)
    if due:
        noted.edited = noted.in_doubt = False
        await _check(context, planner, plan)
    return not ask_about_outdated(context, plan) and due and not _asks(context)


def _asks(context: TurnContext) -> bool:
    """Return whether the top flow waits for an answer.

    Offers made before the plan changed are ignored, because the flow makes a new offer.
    """
    state = context.state
    active = state.stack.active
    if active is None:
        return False
    open_ones = [entry for entry in state.ambiguity.open if entry.flow_id == active.flow_id]
    is_stale = read_candidate(state, active) is None
    return any(entry.about.fingerprint is None or not is_stale for entry in open_ones)


def _take_in(context: TurnContext, plan: PlanFlow, flow: BaseFlow) -> None:
    """Store a completed step's outputs in its plan. Results that only serve the plan are not reported (RS-2)."""
    step = plan.step_of(flow.flow_id)
    assert step is not None
    step.become(flow.status)
    if flow.state is not FlowState.COMPLETED:
        return
    step.keep_outputs({name: flow.outputs.get(name, flow.value(name)) for name in flow.spec.outputs})
    acted = any(note.flow_id == flow.flow_id for note in context.state.effects)
    if acted:
        settle(plan, step)
    elif not step.tell:
        context.changes.silent.add(flow.flow_id)


async def _check(context: TurnContext, planner: Planner, plan: PlanFlow) -> None:
    changes = await planner.check(plan, context)
    for change in changes:
        note_revision(context, plan, change.kind.value, change.why)
    if not changes:
        note_revision(context, plan, ChangeKind.CONTINUE.value)
    outcomes = [change.kind.value for change in changes] or [ChangeKind.CONTINUE.value]
    context.log.signal("agent", SignalType.PLAN, plan.flow_id, outcomes=outcomes, revision=plan.revision)
    _void_approvals(context, plan)
    report_changes(context, plan, changes)
    update_stack(context)  # removes flows that the changes have ended
    context.changes.plans.seen = len(context.changes.finished)
    stack_plan(context, plan)


def _void_approvals(context: TurnContext, plan: PlanFlow) -> None:
    """Void approvals from earlier plan revisions. The flows request approval again in this turn (PX-17)."""
    stale = {one.flow_id for one in context.state.approvals if one.plan_revision != plan.revision}
    for step in plan.steps:
        flow = context.state.stack.get(step.flow_id)
        void = step.flow_id in stale and context.state.void_approvals(step.flow_id)
        if void and flow is not None and flow.status == AWAITING_APPROVAL:
            context.state.stack.unpark(flow, context.now)


def report_changes(context: TurnContext, plan: PlanFlow, changes: Sequence[Change]) -> None:
    """Report the changes that matter to the user, unless all steps are finished."""
    told = [change for change in changes if change.matters]
    if not told or not plan.unfinished:
        return
    context.tell(
        NoticeKind.REPLANNED,
        flow_id=plan.flow_id,
        added=_labels(told, ChangeKind.EXPAND),
        dropped=_labels(told, ChangeKind.PRUNE),
        reordered=any(change.kind is ChangeKind.REORDER for change in told),
        why=next((change.why for change in told if change.why), ""),
        steps=[step.label for step in plan.unfinished],
    )


def _labels(changes: Sequence[Change], kind: ChangeKind) -> list[str]:
    return [label for change in changes if change.kind is kind for label in change.steps]


def begin_step(context: TurnContext, flow: BaseFlow) -> None:
    """Fill a plan step's empty slots with the plan's values before the step first runs.

    Do nothing for other flows.
    """
    plan = context.state.stack.plan_of(flow)
    step = plan.step_of(flow.flow_id) if plan is not None else None
    if plan is None or step is None or flow.progress.begun:
        return
    flow.progress.begin()
    if plan.progress.undo_first:
        flow.progress.undo_before(plan.progress.undo_first)
        plan.progress.undo_before(())
    values = resolve(plan, step) | inherit(plan, step, flow.spec)
    wanted = {name: value for name, value in values.items() if name not in flow.slots}
    problems = flow.fill_slots_by_label(wanted, turn_id=context.ids.turn_id, source=SlotSource.INHERITED)
    for problem in problems:
        context.log.failed_check("plans", "binding", str(problem.why), flow.flow_id)
