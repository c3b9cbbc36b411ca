"""Let the message act on the stack, by its kind."""

from __future__ import annotations

from orchestrator.agent.approvals import DECIDING, expire_approvals, take_decision
from orchestrator.agent.messages import MESSAGES
from orchestrator.agent.messages.correction import DECISIONS, decide
from orchestrator.agent.modules import Modules
from orchestrator.agent.open_question import leave_open, reject
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import MessageKind, Understanding

_HANDLERS = dict(MESSAGES)

CHANGES_NOTHING = frozenset({MessageKind.DIGRESSION, MessageKind.CHITCHAT, MessageKind.UNKNOWN})


async def dispatch(turn: RunningTurn, _modules: Modules) -> None:
    """Let the message act on the stack; `turn.carry_on` says whether PEX has something to do."""
    _abandon_stale(turn)
    if turn.changes.state.approvals:
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
    if understood.kind in DECIDING and await take_decision(turn, understood):
        return
    _drop_loose_questions(turn, understood)
    for why in understood.assumed:
        turn.changes.remark(RemarkKind.ASSUMED, why=why)
    _HANDLERS[understood.kind](turn, understood)
    active = turn.changes.state.stack.active
    if active is not None:
        active.note_turn(turn.work.turn_id)


def _drop_loose_questions(turn: RunningTurn, understood: Understanding) -> None:
    """A question that belongs to no flow is over once the user does something else."""
    if understood.kind in CHANGES_NOTHING or understood.kind in {
        MessageKind.CONFIRMATION,
        MessageKind.DENIAL,
    }:
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
