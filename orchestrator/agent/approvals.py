"""Decisions on calls that wait for an approval: granted, denied, or expired, which is a no (PX-17)."""

from __future__ import annotations

from orchestrator.agent.running import RunningTurn
from orchestrator.agent.switching import cancel
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL
from orchestrator.dialogue.records import PendingApproval
from orchestrator.pex.approve import grant
from orchestrator.telemetry import SignalType


def find_approval(turn: RunningTurn, target: str | None) -> PendingApproval | None:
    """The pending approval of the flow that is named, or of the one on top."""
    top = turn.state.stack.top
    flow_id = target or (top.flow_id if top is not None and top.standing == AWAITING_APPROVAL else None)
    return next((approval for approval in turn.state.approvals if approval.flow_id == flow_id), None)


def decide_approval(turn: RunningTurn, approval: PendingApproval, *, granted: bool) -> None:
    """Let the flow go on with the call, or give it up. Single use: the approval is gone either way."""
    flow = turn.state.stack.get(approval.flow_id)
    turn.state.approvals.remove(approval)
    turn.world.signal(
        "agent",
        SignalType.CHECK,
        approval.flow_id,
        check="approval",
        granted=granted,
        approval_id=approval.approval_id,
        decided_by=turn.world.user_id,
    )
    if flow is None:
        return
    if not granted:
        cancel(turn, flow)
        return
    turn.state.stack.approve(flow, turn.world.now, reason="an approval was granted")
    grant(flow, approval)
    turn.carry_on = True


def expire_approvals(turn: RunningTurn) -> None:
    """What nobody decided in time is denied."""
    for approval in [entry for entry in turn.state.approvals if entry.has_expired(turn.world.now)]:
        decide_approval(turn, approval, granted=False)
