"""Corrections: apply them to the task they are about, or ask which value is meant (IR-4)."""

from __future__ import annotations

from orchestrator.agent.corrections.flows import correct_flow
from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.open_question import is_plain, leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import ask_for_new_value, ask_what_to_change, ask_which_slot, report_awaited
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import AWAITING_RESULT, PARKED
from orchestrator.dialogue.understanding import Understanding


def take_correction(turn: RunningTurn, understood: Understanding) -> None:
    """Correct the active flow, or the completed one that `target` names; ask what to change if no value is given.

    A call whose result is outstanding is corrected once the result is there.
    """
    flow = find_corrected(turn, understood)
    if flow is None:
        be_unsure(turn, understood)
        return
    if flow.status == AWAITING_RESULT:
        report_awaited(turn, flow)
        leave_open(turn)
        return
    decided = {name: mention for name, mention in understood.slots.items() if not mention.is_open}
    undecided = understood.slots.keys() - decided.keys()
    if len(understood.either) > 1:
        ask_which_slot(turn, flow, understood)
    elif not decided and turn.changes.state.stack.get(flow.flow_id) is None:
        be_unsure(turn, understood)
    elif decided or undecided:
        if decided:
            correct_flow(turn, flow, decided)
        if undecided and (turn.carry_on or not decided):
            ask_for_new_value(turn, turn.changes.state.stack.active or flow, min(undecided))
    elif _withdraws_denial(turn, understood):
        turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
        turn.carry_on = True
    else:
        ask_what_to_change(turn, flow)


def _withdraws_denial(turn: RunningTurn, understood: Understanding) -> bool:
    """Return whether "sorry, yes, book it" answers what should change: nothing, so the offer is repeated."""
    entry = turn.changes.state.ambiguity.current
    deed = entry.about.take_back_no() if entry is not None else None
    return deed is not None and not understood.is_click and is_plain(understood)


def find_corrected(turn: RunningTurn, understood: Understanding) -> BaseFlow | None:
    active = turn.changes.state.stack.active
    top = turn.changes.state.stack.top
    if active is None and top is not None and top.status in PARKED and understood.slots:
        active = top
    target = understood.target
    stacked, done = turn.changes.state.stack.live(), turn.changes.state.completed
    plan = turn.changes.state.stack.plan_of(active) if active is not None else None
    if plan is not None and active is not None and _concerns(plan, active, understood):
        return plan
    if active is not None and target in {None, active.dact, active.flow_id}:
        return active
    named = next((flow for flow in reversed([*done, *stacked]) if target in {flow.dact, flow.flow_id}), None)
    return named or active or turn.changes.state.find_completed()


def _concerns(plan: PlanFlow, flow: BaseFlow, understood: Understanding) -> bool:
    """Return whether values belong to the plan: it has slots for them, and is named or the running flow has none."""
    labels = understood.slots.keys()
    is_named = [score.dact for score in understood.flows[:1]] == [plan.dact]
    return (
        bool(labels)
        and labels <= plan.spec.slots.keys()
        and (is_named or not labels <= flow.spec.slots.keys())
    )
