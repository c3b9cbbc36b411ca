"""Actions of answers to the open question, as the question defines them (see `dialogue.questions`)."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.agent.corrections.settling import decide
from orchestrator.agent.messages.task import start_task
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import ask_what_to_change, cancel, fill
from orchestrator.dialogue.ambiguity import Ambiguity
from orchestrator.dialogue.consent import agree, drop_candidate
from orchestrator.dialogue.flow import BaseFlow
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
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.saying import say


def act(turn: RunningTurn, entry: Ambiguity, deed: Deed) -> None:
    """Carry out a deed for the question that it answers."""
    match deed:
        case Decide(decision):
            decide(turn, decision)
        case Propose(decision, label) if isinstance(entry.about, SettleDone):
            turn.changes.remark(RemarkKind.ASSUMED, why=say("meant", option=label))
            question = replace(entry.about, proposed=decision)
            turn.changes.state.ambiguity.declare(question, turn.work.turn_id)
        case CloseQuestion(told):
            close(turn, entry, told=told)
        case Start(dact, slots):
            turn.changes.state.ambiguity.resolve(entry)
            start_task(turn, dact, slots)
        case AskAgain() | Propose():
            turn.changes.remark(RemarkKind.NOT_UNDERSTOOD)
            turn.carry_on = False
        case _:
            flow = turn.changes.state.stack.active
            if flow is None or entry.flow_id not in {None, flow.flow_id}:
                close(turn, entry, told=True)
            else:
                _act_on_flow(turn, flow, entry, deed)


def close(turn: RunningTurn, entry: Ambiguity, *, told: bool) -> None:
    """Close a question without acting on it; the running task continues."""
    turn.changes.state.ambiguity.resolve(entry)
    if told:
        turn.changes.remark(RemarkKind.DECLINED)
        turn.carry_on = turn.changes.state.stack.active is not None
    else:
        leave_open(turn)


def _act_on_flow(
    turn: RunningTurn,
    flow: BaseFlow,
    entry: Ambiguity,
    deed: Agree | Continue | Fill | Clear | Decline | GiveUp,
) -> None:
    state = turn.changes.state
    match deed:
        case GiveUp(left_unknown):
            if left_unknown:
                turn.changes.remark(RemarkKind.LEFT_UNKNOWN, flow_id=flow.flow_id)
            cancel(turn, flow, told=not left_unknown)
            return
        case Decline():
            _decline(turn, flow, entry)
            return
        case Agree():
            if agree(state, flow):
                flow.confirm()
        case Fill(slot, value, confirmed):
            state.ambiguity.resolve(entry)
            fill(turn, flow, {slot: value})
            if confirmed:
                flow.confirm(slot)
            return
        case Clear(slot):
            flow.clear(slot)
        case Continue():
            pass
    state.ambiguity.resolve(entry)
    turn.carry_on = True


def _decline(turn: RunningTurn, flow: BaseFlow, entry: Ambiguity) -> None:
    """Handle a “no” to a call or rows: ask what to change, unless nothing can be changed."""
    drop_candidate(flow)
    turn.changes.state.ambiguity.resolve(entry)
    turn.changes.remark(RemarkKind.DECLINED)
    if _may_be_changed(flow):
        ask_what_to_change(turn, flow, after_no=True)
    else:
        cancel(turn, flow, told=False)


def _may_be_changed(flow: BaseFlow) -> bool:
    """Return whether the user can change a slot, besides those that the task only passes on."""
    own = (name for name in flow.spec.slots if name in flow.slots and flow.spec.slots[name].description)
    return any(name not in flow.spec.inputs or name not in flow.spec.outputs for name in own)
