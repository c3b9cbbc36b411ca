"""Between RES and the next PEX: what a plan's steps have found, and what that changes (AG-2, PL-2)."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.agent.modules import Modules
from orchestrator.agent.plan.findings import find_news
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.json_values import copy_json
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL, FlowState
from orchestrator.dialogue.plan_step import BOUND
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.slots import SlotSource
from orchestrator.plans.bindings import inherit, resolve
from orchestrator.plans.changes import Change, ChangeKind, note_revision, stack_plan
from orchestrator.telemetry import SignalType


async def look_after_plan(turn: RunningTurn, modules: Modules, going: bool) -> bool:
    """Take in what has ended and make the replanning check. Whether another flow is to be carried out now."""
    ended = turn.changes.finished[turn.plan.seen :]
    turn.plan.seen = len(turn.changes.finished)
    plan = turn.changes.state.stack.plan
    if plan is None:
        return going
    own = [flow for flow in ended if flow.plan_id == plan.flow_id and plan.step_of(flow.flow_id) is not None]
    for flow in own:
        _take_in(turn, plan, flow)
    news = await find_news(turn, modules, plan) if plan.rounds else []
    if plan.rounds and (own or turn.plan.edited or turn.plan.in_doubt or news):
        trouble = (
            bool(news)
            or turn.plan.in_doubt
            or (not turn.plan.edited and any(_went_wrong(flow) for flow in own))
        )
        turn.plan.edited = turn.plan.in_doubt = False
        await _check(turn, modules, plan, trouble=trouble, news=news)
        going = going or not _asks(turn)
    return going and turn.changes.state.stack.active is not None


def _asks(turn: RunningTurn) -> bool:
    """Whether the flow on top waits for an answer, which is not to be run over."""
    active = turn.changes.state.stack.active
    return active is not None and any(e.flow_id == active.flow_id for e in turn.changes.state.ambiguity.open)


def _went_wrong(flow: BaseFlow) -> bool:
    return flow.state is not FlowState.COMPLETED


def _take_in(turn: RunningTurn, plan: PlanFlow, flow: BaseFlow) -> None:
    """Keep what a step has found with its plan; a result that only serves the plan is not told (RS-2)."""
    step = plan.step_of(flow.flow_id)
    assert step is not None
    step.become(flow.standing)
    if flow.state is not FlowState.COMPLETED:
        return
    values = {name: flow.outputs.get(name, flow.value(name)) for name in flow.spec.outputs}
    step.outputs = {name: copy_json(value) for name, value in values.items() if value is not None}
    acted = any(note.flow_id == flow.flow_id for note in turn.changes.state.effects)
    if not step.tell and not acted:
        turn.changes.silent.add(flow.flow_id)


async def _check(
    turn: RunningTurn, modules: Modules, plan: PlanFlow, *, trouble: bool, news: Sequence[str]
) -> None:
    context = turn.context
    changes = await modules.planner.check(plan, context, trouble=trouble, news=news)
    for change in changes:
        note_revision(context, plan, change.kind.value, change.why)
    if not changes:
        note_revision(context, plan, ChangeKind.CONTINUE.value, " ".join(news))
    outcomes = [change.kind.value for change in changes] or [ChangeKind.CONTINUE.value]
    context.log.signal("agent", SignalType.PLAN, plan.flow_id, outcomes=outcomes, revision=plan.revision)
    _void_approvals(turn, plan)
    tell_changes(turn, plan, changes)
    modules.res.start(context)  # what was given up leaves at once
    turn.plan.seen = len(context.changes.finished)
    stack_plan(context, plan)


def _void_approvals(turn: RunningTurn, plan: PlanFlow) -> None:
    """What was to be approved belonged to the plan as it was: it is asked for anew, in this very turn (PX-17)."""
    stale = {one.flow_id for one in turn.changes.state.approvals if one.plan_revision != plan.revision}
    for step in plan.steps:
        flow = turn.changes.state.stack.get(step.flow_id)
        void = step.flow_id in stale and turn.changes.state.void_approvals(step.flow_id)
        if void and flow is not None and flow.standing == AWAITING_APPROVAL:
            turn.changes.state.stack.unpark(flow, turn.context.now)


def tell_changes(turn: RunningTurn, plan: PlanFlow, changes: Sequence[Change]) -> None:
    """The difference between two revisions, when it matters to the user.

    When nothing is left to do, the plan's own end says what there is to say.
    """
    told = [change for change in changes if change.matters]
    if not told or all(step.is_finished for step in plan.steps):
        return
    turn.changes.remark(
        RemarkKind.REPLANNED,
        flow_id=plan.flow_id,
        added=_labels(told, ChangeKind.EXPAND),
        dropped=_labels(told, ChangeKind.PRUNE),
        reordered=any(change.kind is ChangeKind.REORDER for change in told),
        why=next((change.why for change in told if change.why), ""),
        steps=[step.label for step in plan.steps if not step.is_finished],
    )


def _labels(changes: Sequence[Change], kind: ChangeKind) -> list[str]:
    return [label for change in changes if change.kind is kind for label in change.steps]


def begin_step(turn: RunningTurn) -> None:
    """Give the sub-flow on top the values that its plan knows by now, once."""
    flow = turn.changes.state.stack.active
    plan = turn.changes.state.stack.plan_of(flow) if flow is not None else None
    if flow is None or plan is None or flow.notes.get(BOUND):
        return
    step = plan.step_of(flow.flow_id)
    if step is None:
        return
    flow.notes[BOUND] = True
    values = resolve(plan, step) | inherit(plan, step, flow.spec)
    wanted = {name: value for name, value in values.items() if name not in flow.slots}
    problems = flow.fill_slots_by_label(wanted, turn_id=turn.work.turn_id, source=SlotSource.INHERITED)
    for problem in problems:
        turn.context.log.failed_check("plans", "binding", problem.why, flow.flow_id)
