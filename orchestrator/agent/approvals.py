"""Handle decisions on calls that need approval. An expired approval has the same effect as a denial (PX-17)."""

from orchestrator.agent.open_question import is_plain, leave_open
from orchestrator.agent.tasks import cancel
from orchestrator.context import TurnContext
from orchestrator.dialogue.consent import grant
from orchestrator.dialogue.lifecycle import AWAITING_APPROVAL
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import Level
from orchestrator.dialogue.records import PendingApproval
from orchestrator.dialogue.understanding import MessageKind, Understanding
from orchestrator.pex.calls.consent import bind, present_to_user
from orchestrator.telemetry import SignalType
from orchestrator.turns.approval import (
    PERSON,
    ApprovalRecord,
    ApprovalStatus,
    ClosedApproval,
    Decision,
    from_unix,
)
from orchestrator.types import is_object

DECIDING = frozenset({MessageKind.CONFIRMATION, MessageKind.DENIAL})


async def take_decision(context: TurnContext, understood: Understanding) -> bool:
    """Act on a “yes” or “no” to an approval request, or show the request again if the answer is unclear.

    Return False if the message is not about an approval.
    """
    named = _named(context, understood)
    approval = _find_approval(context, understood.target, named)
    if approval is not None:
        context.state.ambiguity.resolve(
            level=Level.GENERAL
        )  # questions about messages that weren't understood
        granted = understood.kind is MessageKind.CONFIRMATION
        is_late = not understood.is_click and context.state.turn > approval.asked_turn + 1
        if is_late or (granted and not is_plain(understood)):  # the answer may mean something else
            present_to_user(context, approval)
        else:
            await _decide(context, approval, granted=granted)
        return True
    if named is None:
        return False
    context.tell(NoticeKind.APPROVAL_OVER)
    context.changes.asks_again = True
    context.changes.carry_on = context.state.stack.active is not None
    return True


def _named(context: TurnContext, understood: Understanding) -> str | None:
    """Return the approval ID from a click, or None.

    The ID prevents an old button from granting a new request.
    """
    payload = (context.action or {}).get("payload") if understood.is_click else None
    named = payload.get("approval_id") if is_object(payload) else None
    return named if isinstance(named, str) else None


def _find_approval(context: TurnContext, target: str | None, named: str | None) -> PendingApproval | None:
    """Return the pending approval with the ID `named`, or None.

    If `named` is None, find the approval for the flow `target`, or for the top flow if it awaits approval.
    """
    pending = context.state.approvals
    if named is not None:
        return next((approval for approval in pending if approval.approval_id == named), None)
    top = context.state.stack.top
    flow_id = target or (top.flow_id if top is not None and top.status == AWAITING_APPROVAL else None)
    return next((approval for approval in pending if approval.flow_id == flow_id), None)


async def _decide(context: TurnContext, approval: PendingApproval, *, granted: bool) -> None:
    """Record the decision and act on it. If the approval was decided earlier, act on the earlier decision.

    If the user grants what only an operator can grant, show the request again. A missing approval is treated
    as void.
    """
    decision = Decision(granted, context.ids.user_id or "the user", now=context.now)
    record = await context.journal.decide_approval(approval.approval_id, decision)
    is_open = record is not None and record.status_at(from_unix(context.now)) is ApprovalStatus.PENDING
    if record is not None and record.operator_only and granted and is_open:
        present_to_user(context, approval)  # only an operator can grant this approval
        return
    status = ApprovalStatus.VOID if record is None else record.status
    if status is ApprovalStatus.PENDING:  # the decision came too late
        status = ApprovalStatus.EXPIRED
    _act(context, approval, status, record)


def _act(
    context: TurnContext, approval: PendingApproval, status: ApprovalStatus, record: ApprovalRecord | None
) -> None:
    """Close the approval. Then continue or cancel its flow, or show an operator's answer to a handoff request."""
    flow = context.state.stack.get(approval.flow_id)
    context.state.close_approval(approval)
    decided_by, reason = (record.decided_by, record.reason) if record is not None else (None, None)
    facts = {"approval_id": approval.approval_id, "status": status.value, "decided_by": decided_by}
    context.log.event("approval_decided", **facts)
    context.log.signal("agent", SignalType.CHECK, approval.flow_id, check="approval", **facts)
    loose = flow is None and approval.tool_id != PERSON
    if status in {ApprovalStatus.EXPIRED, ApprovalStatus.VOID} or loose:
        expired = status is ApprovalStatus.EXPIRED
        over = ApprovalStatus.EXPIRED if expired else ApprovalStatus.VOID
        context.changes.approvals.closed[approval.approval_id] = over
    if approval.tool_id == PERSON:
        context.tell(
            NoticeKind.PERSON_ANSWERED,
            answered=status is ApprovalStatus.GRANTED,
            text=reason or "",
            by=decided_by or "",
        )
        leave_open(context)
        return
    if flow is None:
        return
    if status is ApprovalStatus.GRANTED:
        context.state.stack.approve(flow, context.now, reason="an approval was granted")
        grant(flow, approval.approval_id, bind(approval))
        context.changes.carry_on = True
        return
    context.tell(NoticeKind.NOT_APPROVED, status=status.value, reason=reason or "", flow_id=flow.flow_id)
    cancel(context, flow, told=False)


def expire_approvals(context: TurnContext) -> None:
    """Close overdue approvals as expired, and cancel their flows."""
    for approval in [entry for entry in context.state.approvals if entry.has_expired(context.now)]:
        _act(context, approval, ApprovalStatus.EXPIRED, None)


def close_approvals(context: TurnContext) -> tuple[ClosedApproval, ...]:
    """Return the approvals that this turn closes.

    Undecided approvals that the state no longer contains are void.
    """
    waiting = {approval.approval_id for approval in context.state.approvals}
    decided = {
        event.payload["approval_id"] for event in context.log.events if event.type == "approval_decided"
    }
    asked = [record.approval_id for record in context.changes.approvals.asked]
    before = [approval["approval_id"] for approval in context.world.prior_state.get("approvals", ())]
    void = {
        approval_id: ApprovalStatus.VOID
        for approval_id in (*before, *asked)
        if approval_id not in waiting and approval_id not in decided
    }
    closed = {**void, **context.changes.approvals.closed}
    return tuple(ClosedApproval(approval_id, status) for approval_id, status in closed.items())
