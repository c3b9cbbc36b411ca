"""Corrections of completed flows: their plans, their committed effects, and reruns (IR-4)."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.agent.corrections.plans import bound_names, effects_of
from orchestrator.agent.tasks import enter
from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.correction import apply_changes, reopen
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.records import EffectNote
from orchestrator.types import JsonObject


def plan_of(context: TurnContext, flow: BaseFlow) -> PlanFlow | None:
    """Return the flow itself if it is a plan, or else the plan that contains it, or None."""
    if isinstance(flow, PlanFlow):
        return flow
    known = [*reversed(context.state.stack.flows), *reversed(context.state.completed)]
    plans = [one for one in known if isinstance(one, PlanFlow)]
    return next((one for one in plans if one.flow_id == flow.plan_id or one.step_of(flow.flow_id)), None)


def effects_made_from(context: TurnContext, flow: BaseFlow, names: Collection[str]) -> list[EffectNote]:
    """List committed effects of the flow and its plan's steps that used these slots.

    For a completed flow, all effects are listed, because the flow would repeat all of them.
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
    """Push a completed plan back onto the stack, with the results of its steps."""
    plan = reopen_flow(context, ended)
    assert isinstance(plan, PlanFlow)
    plan.take_up(ended)
    return plan


def repeat_with_changes(context: TurnContext, flow: BaseFlow, changes: JsonObject) -> BaseFlow:
    """Rerun a completed flow with the user's changes, and return the new flow."""
    fresh = reopen_flow(context, flow)
    apply_changes(fresh, changes, turn_id=context.ids.turn_id)
    context.changes.carry_on = True
    return fresh


def reopen_flow(context: TurnContext, flow: BaseFlow) -> BaseFlow:
    """Push a new flow with the values of a completed flow."""
    fresh = reopen(flow, context.now)
    context.state.stack.push(fresh, context.now, reason=f"the user corrected {flow.dact}")
    enter(context, fresh)
    return context.state.stack.find(flow.dact) or fresh
