"""Correct the task that the user refers to (IR-4)."""

from __future__ import annotations

from orchestrator.agent.corrections.flows import correct_flow
from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.open_question import is_plain, leave_open
from orchestrator.agent.tasks import ask_for_new_value, ask_what_to_change, report_awaited, shown
from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import AWAITING_RESULT, PARKED
from orchestrator.dialogue.questions import Option, WhichSlot
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.wording import name_slot_of
from orchestrator.saying import say
from orchestrator.types import JsonObject


def take_correction(context: TurnContext, understood: Understanding) -> None:
    """Correct the flow that the user refers to, or ask for the slot or value that the message lacks.

    A flow that waits for a result cannot be corrected until the result arrives.
    """
    flow = find_corrected(context, understood)
    if flow is None:
        be_unsure(context, understood)
        return
    if flow.status == AWAITING_RESULT:
        report_awaited(context, flow)
        leave_open(context)
        return
    decided = {name: mention for name, mention in understood.slots.items() if not mention.is_open}
    undecided = understood.slots.keys() - decided.keys()
    if len(understood.either) > 1:
        _ask_which_slot(context, flow, understood)
    elif not decided and context.state.stack.get(flow.flow_id) is None:
        be_unsure(context, understood)
    elif decided or undecided:
        if decided:
            correct_flow(context, flow, decided)
        if undecided and (context.changes.carry_on or not decided):
            ask_for_new_value(context, context.state.stack.active or flow, min(undecided))
    elif _withdraws_denial(context, understood):
        context.state.ambiguity.resolve(flow_id=flow.flow_id)
        context.changes.carry_on = True
    else:
        ask_what_to_change(context, flow)


def _withdraws_denial(context: TurnContext, understood: Understanding) -> bool:
    """Return whether a message such as “sorry, yes, book it” takes back a “no” to an offer."""
    entry = context.state.ambiguity.current
    deed = entry.about.take_back_no() if entry is not None else None
    return deed is not None and not understood.is_click and is_plain(understood)


def find_corrected(context: TurnContext, understood: Understanding) -> BaseFlow | None:
    active = context.state.stack.active
    top = context.state.stack.top
    if active is None and top is not None and top.status in PARKED and understood.slots:
        active = top
    target = understood.target
    stacked, done = context.state.stack.live(), context.state.completed
    plan = context.state.stack.plan_of(active) if active is not None else None
    if plan is not None and active is not None and _concerns(plan, active, understood):
        return plan
    if active is not None and target in {None, active.dact, active.flow_id}:
        return active
    named = next((flow for flow in reversed([*done, *stacked]) if target in {flow.dact, flow.flow_id}), None)
    return named or active or context.state.find_completed()


def _concerns(plan: PlanFlow, flow: BaseFlow, understood: Understanding) -> bool:
    """Return whether the message's values are for the plan rather than for its running flow."""
    labels = understood.slots.keys()
    is_named = [score.dact for score in understood.flows[:1]] == [plan.dact]
    return (
        bool(labels)
        and labels <= plan.spec.slots.keys()
        and (is_named or not labels <= flow.spec.slots.keys())
    )


def _ask_which_slot(context: TurnContext, flow: BaseFlow, understood: Understanding) -> None:
    """Ask which of several slots a value belongs to. Nothing changes until the user answers."""
    value = next(iter(understood.slots.values())).value
    own = flow is context.state.stack.top
    meant: JsonObject = {"flow_id": flow.flow_id} if own else {"dact": flow.dact}
    options = tuple(
        Option(
            say("change_to", slot=name_slot_of(flow, name), value=shown(context, flow, name, value)),
            "change_slot",
            {**meant, "slot": name, "value": value},
        )
        for name in understood.either
    )
    question = WhichSlot(flow_id=flow.flow_id if own else None, options=options)
    context.state.ambiguity.declare(question)
    context.changes.carry_on = False
