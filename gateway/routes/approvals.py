"""Approvals: list what waits, decide. The flow goes on in a turn of its session (PX-17)."""

from fastapi import APIRouter

from gateway.dependencies import TheApprovals, TheCaller, TheTenant, TheTurns
from gateway.parameters import Limit
from gateway.request_bodies import ApprovalDecision
from gateway.responses.approvals import Approval, DecidedApproval
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision
from orchestrator.turns.turn import IfBusy, Submission, TurnInput, TurnKind
from orchestrator.types import SessionId, TenantId

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])


@router.get("", response_model=list[Approval])
async def list_approvals(
    approvals: TheApprovals,
    tenant: TheTenant,
    session_id: SessionId | None = None,
    status: ApprovalStatus | None = None,
    limit: Limit = 100,
) -> list[ApprovalRecord]:
    """Newest first; with `status=pending` those that somebody still has to decide."""
    return await approvals.list(tenant, session_id=session_id, status=status, limit=limit)


@router.post("/{approval_id}")
async def decide_approval(
    approval_id: str, body: ApprovalDecision, approvals: TheApprovals, turns: TheTurns, caller: TheCaller
) -> DecidedApproval:
    """Grant or deny, once. The same decision again has no further effect.

    Only operators grant a call that is marked `operator_only`.
    """
    granted = body.decision == "grant"
    decision = Decision(granted, caller.decider(body.decided_by), body.reason, by_operator=caller.operates)
    asked = await approvals.get(caller.tenant_id, approval_id)
    if not decision.suffices(operator_only=asked.operator_only):
        caller.require_operator()
    record = await approvals.decide(caller.tenant_id, approval_id, decision)
    receipt = await turns.submit(_resuming_turn(caller.tenant_id, record, granted=granted))
    return DecidedApproval(**Approval.model_validate(record).model_dump(), resumed_by=receipt.turn_id)


def _resuming_turn(tenant: TenantId, record: ApprovalRecord, *, granted: bool) -> Submission:
    """The turn in which the flow goes on; a repeated call finds the first one by its key."""
    action = {
        "name": "approve" if granted else "deny",
        "payload": {"flow_id": record.flow_id or None, "approval_id": record.approval_id},
    }
    return Submission(
        session_id=record.session_id,
        input=TurnInput(action=action, form="action", kind=TurnKind.SYSTEM),
        tenant_id=tenant,
        idempotency_key=f"approval:{record.approval_id}",
        if_busy=IfBusy.ENQUEUE,
    )
