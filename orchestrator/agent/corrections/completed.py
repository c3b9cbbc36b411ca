"""Completed flows under correction: the plan they belong to, what they committed, and how they run again (IR-4)."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.agent.corrections.plans import bound_names, effects_of
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import enter
from orchestrator.dialogue.changes.correction import apply_changes, reopen
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.records import EffectNote
from orchestrator.types import JsonObject


def plan_of(turn: RunningTurn, flow: BaseFlow) -> PlanFlow | None:
    """Find the plan that a flow is, or serves, or has served; one that was taken up again before the ended one."""
    if isinstance(flow, PlanFlow):
        return flow
    known = [*reversed(turn.changes.state.stack.flows), *reversed(turn.changes.state.completed)]
    plans = [one for one in known if isinstance(one, PlanFlow)]
    return next((one for one in plans if one.flow_id == flow.plan_id or one.step_of(flow.flow_id)), None)


def effects_made_from(turn: RunningTurn, flow: BaseFlow, names: Collection[str]) -> list[EffectNote]:
    """List committed effects with these values, of the flow and of its plan's steps.

    A completed flow would repeat all of them.
    """
    is_over = turn.changes.state.stack.get(flow.flow_id) is None
    plan = plan_of(turn, flow)
    steps = effects_of(turn.context, plan, set(bound_names(plan, flow, names).values())) if plan else []
    own = [
        note
        for note in turn.changes.state.effects
        if note.flow_id == flow.flow_id
        and note.stands
        and (is_over or set(names) & note.slots.keys())
        and note not in steps
    ]
    return [*own, *steps]


def reopen_plan(turn: RunningTurn, ended: PlanFlow) -> PlanFlow:
    """Push a completed plan back onto the stack, with the results of its steps."""
    plan = reopen_flow(turn, ended)
    assert isinstance(plan, PlanFlow)
    plan.take_up(ended)
    return plan


def repeat_with_changes(turn: RunningTurn, flow: BaseFlow, changes: JsonObject) -> BaseFlow:
    """Rerun a completed flow with the user's changes. Returns the new flow."""
    fresh = reopen_flow(turn, flow)
    apply_changes(fresh, changes, turn_id=turn.work.turn_id)
    turn.carry_on = True
    return fresh


def reopen_flow(turn: RunningTurn, flow: BaseFlow) -> BaseFlow:
    """Push a fresh flow with the values of a completed one."""
    context = turn.context
    fresh = reopen(flow, context.now)
    turn.changes.state.stack.push(fresh, context.now, reason=f"the user corrected {flow.dact}")
    enter(turn, fresh)
    return turn.changes.state.stack.find(flow.dact) or fresh
