"""What each kind of message does to the stack (IR-1). Understanding it was NLU's business; doing it is PEX's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.agent.messages.approvals import expire_approvals, take_decision
from orchestrator.agent.messages.confirmation import confirm, deny
from orchestrator.agent.messages.corrections import DECISIONS, ask_what_to_change, correct_flow, decide
from orchestrator.agent.messages.digressions import be_unsure, chat, digress, leave_open, reject
from orchestrator.agent.messages.plan_change import change_plan
from orchestrator.agent.messages.switching import cancel_task, resume_task
from orchestrator.agent.messages.tasks import fill, start_task, stop_waiting
from orchestrator.agent.modules import Modules
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Level
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.lifecycle import AWAITING_CONTEXT, PARKED
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import MessageKind, Understanding

ASIDE = frozenset({MessageKind.DIGRESSION, MessageKind.CHITCHAT, MessageKind.UNKNOWN})


async def take_up(turn: RunningTurn, _modules: Modules) -> None:
    """Let the message act on the stack; `turn.carry_on` says whether PEX has something to do."""
    _abandon_stale(turn)
    expire_approvals(turn)
    understood = turn.understanding
    if understood is None:
        leave_open(turn)
        return
    if understood.rejection is not None:
        reject(turn, understood.rejection.value)
        return
    if understood.kind is not MessageKind.DIGRESSION:
        turn.changes.state.digression.end()
    if understood.kind is MessageKind.CORRECTION and understood.target in DECISIONS:
        decide(turn, understood.target)
        return
    if await take_decision(turn, understood):
        return
    _drop_loose_questions(turn, understood)
    for why in understood.assumed:
        turn.changes.remark(RemarkKind.ASSUMED, why=why)
    UPTAKES[understood.kind](turn, understood)
    active = turn.changes.state.stack.active
    if active is not None:
        active.note_turn(turn.work.turn_id)


def _take_task(turn: RunningTurn, understood: Understanding) -> None:
    known = [score.dact for score in understood.flows if score.dact in turn.context.world.domain.flows]
    if known:
        start_task(turn, known[0], understood.slots)
    else:
        be_unsure(turn, understood)


def _take_value(turn: RunningTurn, understood: Understanding) -> None:
    flow = turn.changes.state.stack.active
    top = turn.changes.state.stack.top
    if flow is None and top is not None and top.standing == AWAITING_CONTEXT:
        stop_waiting(turn, top)
        flow = top
    if flow is None:
        be_unsure(turn, understood)
    else:
        fill(turn, flow, understood.slots)


def _take_correction(turn: RunningTurn, understood: Understanding) -> None:
    """Of the active flow, or of a completed one that `target` names; without values it is asked what changes."""
    flow = _find_corrected(turn, understood)
    if flow is None:
        be_unsure(turn, understood)
        return
    undecided = {
        name for name, m in understood.slots.items() if m.value is None and not m.candidates and not m.invalid
    }
    if undecided:
        _ask_for_new_value(turn, flow, min(undecided))
    elif understood.slots:
        correct_flow(turn, flow, understood.slots)
    elif turn.changes.state.stack.get(flow.flow_id) is not None:
        ask_what_to_change(turn, flow)
    else:
        be_unsure(turn, understood)


def _find_corrected(turn: RunningTurn, understood: Understanding) -> BaseFlow | None:
    active = turn.changes.state.stack.active
    top = turn.changes.state.stack.top
    if active is None and top is not None and top.standing in PARKED and understood.slots:
        active = top
    target = understood.target
    if active is not None and target in {None, active.dact, active.flow_id}:
        return active
    done = reversed(turn.changes.state.completed)
    named = next((flow for flow in done if target in {flow.dact, flow.flow_id}), None)
    return named or active or turn.changes.state.find_completed()


def _ask_for_new_value(turn: RunningTurn, flow: BaseFlow, slot: str) -> None:
    """The user wants another value and has not said which: the old one stays until there is a new one."""
    turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
    turn.changes.state.ambiguity.declare(
        Level.SPECIFIC, flow_id=flow.flow_id, slot=slot, turn_id=turn.work.turn_id
    )
    turn.carry_on = False


def _drop_loose_questions(turn: RunningTurn, understood: Understanding) -> None:
    """A question that belongs to no flow is over once the user does something else."""
    if understood.kind in ASIDE or understood.kind in {MessageKind.CONFIRMATION, MessageKind.DENIAL}:
        return
    for entry in [entry for entry in turn.changes.state.ambiguity.open if entry.flow_id is None]:
        turn.changes.state.ambiguity.resolve(entry)


def _abandon_stale(turn: RunningTurn) -> None:
    """Tasks that waited longer than the domain allows are given up (FS-13)."""
    older_than = turn.context.world.domain.config.flow_management.abandon_after_s
    stale = turn.changes.state.stack.find_abandoned(older_than, turn.context.now)
    if stale:
        turn.changes.state.stack.abandon(older_than, turn.context.now)
        for flow in stale:
            turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
            turn.changes.remark(RemarkKind.ABANDONED, flow_id=flow.flow_id)


UPTAKES: Mapping[MessageKind, Callable[[RunningTurn, Understanding], None]] = {
    MessageKind.TASK: _take_task,
    MessageKind.SLOT_VALUE: _take_value,
    MessageKind.CORRECTION: _take_correction,
    MessageKind.CONFIRMATION: confirm,
    MessageKind.DENIAL: deny,
    MessageKind.CANCELLATION: cancel_task,
    MessageKind.RESUMPTION: resume_task,
    MessageKind.DIGRESSION: digress,
    MessageKind.CHITCHAT: chat,
    MessageKind.PLAN_CHANGE: change_plan,
    MessageKind.UNKNOWN: be_unsure,
}
"""Every kind has one; a test holds this."""
