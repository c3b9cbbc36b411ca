"""Handle values, “yes” and “no” as answers to the open question.

`dialogue.questions` defines the action for each answer.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.agent.corrections.flows import changed_slots, correct_flow
from orchestrator.agent.corrections.settling import decide
from orchestrator.agent.messages.displayed_rows import choose_row, show_requested_fields, talk_about_rows
from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.messages.task import start_task
from orchestrator.agent.open_question import answer_open, is_plain, leave_open
from orchestrator.agent.tasks import ask_what_to_change, cancel, fill, plain_values, stop_waiting
from orchestrator.context import TurnContext
from orchestrator.dialogue.ambiguity import Ambiguity
from orchestrator.dialogue.consent import agree, drop_candidate
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import AWAITING_CONTEXT
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import Level, SettleDone
from orchestrator.dialogue.questions.deeds import (
    Agree,
    AskAgain,
    Clear,
    CloseQuestion,
    Continue,
    Decide,
    Decline,
    Deed,
    Fill,
    GiveUp,
    Propose,
    Start,
)
from orchestrator.dialogue.understanding import Understanding
from orchestrator.saying import say


def act(context: TurnContext, entry: Ambiguity, deed: Deed) -> None:
    """Apply `deed`, the action for an answer to the question `entry`."""
    match deed:
        case Decide(decision):
            decide(context, decision)
        case Propose(decision, label) if isinstance(entry.about, SettleDone):
            context.tell(NoticeKind.ASSUMED, why=say("meant", option=label))
            question = replace(entry.about, proposed=decision)
            context.state.ambiguity.declare(question)
        case CloseQuestion(told):
            close(context, entry, told=told)
        case Start(dact, slots):
            context.state.ambiguity.resolve(entry)
            start_task(context, dact, slots)
        case AskAgain() | Propose():
            context.tell(NoticeKind.NOT_UNDERSTOOD)
            context.changes.carry_on = False
        case _:
            flow = context.state.stack.active
            if flow is None or entry.flow_id not in {None, flow.flow_id}:
                close(context, entry, told=True)
            else:
                _act_on_flow(context, flow, entry, deed)


def close(context: TurnContext, entry: Ambiguity, *, told: bool) -> None:
    """Close a question without acting on it.

    `told`: True to acknowledge the user's “no” and continue the running task.
    """
    context.state.ambiguity.resolve(entry)
    if told:
        context.tell(NoticeKind.DECLINED)
        context.changes.carry_on = context.state.stack.active is not None
    else:
        leave_open(context)


def _act_on_flow(
    context: TurnContext,
    flow: BaseFlow,
    entry: Ambiguity,
    deed: Agree | Continue | Fill | Clear | Decline | GiveUp,
) -> None:
    state = context.state
    match deed:
        case GiveUp(left_unknown):
            if left_unknown:
                context.tell(NoticeKind.LEFT_UNKNOWN, flow_id=flow.flow_id)
            cancel(context, flow, told=not left_unknown)
            return
        case Decline():
            _decline(context, flow, entry)
            return
        case Agree():
            if agree(state, flow):
                flow.confirm()
        case Fill(slot, value, confirmed):
            state.ambiguity.resolve(entry)
            fill(context, flow, {slot: value})
            if confirmed:
                flow.confirm(slot)
            return
        case Clear(slot):
            flow.clear(slot)
        case Continue():
            pass
    state.ambiguity.resolve(entry)
    context.changes.carry_on = True


def _decline(context: TurnContext, flow: BaseFlow, entry: Ambiguity) -> None:
    """Handle a “no” to a pending call or displayed rows. Ask what to change, or cancel if nothing can change."""
    drop_candidate(flow)
    context.state.ambiguity.resolve(entry)
    context.tell(NoticeKind.DECLINED)
    if _may_be_changed(flow):
        ask_what_to_change(context, flow, after_no=True)
    else:
        cancel(context, flow, told=False)


def _may_be_changed(flow: BaseFlow) -> bool:
    """Return whether the task has a filled slot that the user can change.

    Slots that are both input and output are ignored.
    """
    own = (name for name in flow.spec.slots if name in flow.slots and flow.spec.slots[name].description)
    return any(name not in flow.spec.inputs or name not in flow.spec.outputs for name in own)


def confirm(context: TurnContext, understood: Understanding) -> None:
    """Handle a “yes”. A “yes” that adds or changes a value does not confirm (PX-18)."""
    if not understood.slots and answer_open(context):
        return
    entry = context.state.ambiguity.current
    flow = context.state.stack.active
    if entry is not None and entry.was_put_after(context.arrived_at):
        leave_open(context)
    elif entry is None:
        if not choose_row(context, understood):
            _nothing_open(context)
    elif flow is not None and understood.slots and entry.level is Level.SPECIFIC:
        fill(context, flow, understood.slots)
    elif flow is not None and changed_slots(flow, understood.slots):
        correct_flow(context, flow, understood.slots)  # "yes, but in business class"
    elif entry.about.needs_plain_yes and not is_plain(understood):
        _ask_for_plain_yes(context)
    else:
        act(context, entry, entry.about.yes())
    show_requested_fields(context, understood)  # "Yes, please. What is the address?"


def deny(context: TurnContext, understood: Understanding) -> None:
    if not understood.slots and answer_open(context):
        return
    entry = context.state.ambiguity.current
    flow = context.state.stack.active
    if entry is None and flow is not None:
        cancel(context, context.state.stack.root(flow))  # the user interrupted the running task
    elif entry is None:
        if not talk_about_rows(context, understood):
            _nothing_open(context)
    elif flow is not None and entry.flow_id == flow.flow_id and understood.slots:
        correct_flow(context, flow, understood.slots)  # "no, on Friday"
    else:
        act(context, entry, entry.about.no())


def take_value(context: TurnContext, understood: Understanding) -> None:
    flow = context.state.stack.active
    top = context.state.stack.top
    if flow is None and top is not None and top.status == AWAITING_CONTEXT:
        stop_waiting(context, top)
        flow = top
    if flow is None:
        be_unsure(context, understood)
    elif changed_slots(flow, plain_values(understood.slots)) & flow.slots.keys():
        correct_flow(context, flow, understood.slots)
    else:
        fill(context, flow, understood.slots)


def _ask_for_plain_yes(context: TurnContext) -> None:
    domain = context.world.domain
    files = (*domain.lexicons.get(domain.config.language.default, ()), *domain.lexicons.get("en", ()))
    yes = next((word for file in files for word in file.agree), "yes")
    context.tell(NoticeKind.SAY_YES, yes=yes)
    context.changes.carry_on = False


def _nothing_open(context: TurnContext) -> None:
    if context.state.stack.active is None:
        context.tell(NoticeKind.NOTHING_OPEN)
    leave_open(context)
