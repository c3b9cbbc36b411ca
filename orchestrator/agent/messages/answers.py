"""Actions for answers to the open question. `dialogue.questions` maps answers to actions."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.agent.corrections.settling import decide
from orchestrator.agent.messages.task import start_task
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.tasks import ask_what_to_change, cancel, fill
from orchestrator.context import TurnContext
from orchestrator.dialogue.ambiguity import Ambiguity
from orchestrator.dialogue.consent import agree, drop_candidate
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import SettleDone
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
from orchestrator.saying import say


def act(context: TurnContext, entry: Ambiguity, deed: Deed) -> None:
    """Run the action of an answer to a question."""
    match deed:
        case Decide(decision):
            decide(context, decision)
        case Propose(decision, label) if isinstance(entry.about, SettleDone):
            context.tell(NoticeKind.ASSUMED, why=say("meant", option=label))
            question = replace(entry.about, proposed=decision)
            context.state.ambiguity.declare(question, context.ids.turn_id)
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
    """Close a question without acting on it. The running task continues."""
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
    """Handle a “no” to a call or rows: ask what to change, or cancel if nothing can be changed."""
    drop_candidate(flow)
    context.state.ambiguity.resolve(entry)
    context.tell(NoticeKind.DECLINED)
    if _may_be_changed(flow):
        ask_what_to_change(context, flow, after_no=True)
    else:
        cancel(context, flow, told=False)


def _may_be_changed(flow: BaseFlow) -> bool:
    """Return whether the task has a slot that the user can change.

    Slots that are both input and output do not count.
    """
    own = (name for name in flow.spec.slots if name in flow.slots and flow.spec.slots[name].description)
    return any(name not in flow.spec.inputs or name not in flow.spec.outputs for name in own)
