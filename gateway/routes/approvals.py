"""List and decide approvals (PX-17)."""

from typing import Literal

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from gateway.dependencies import TheApprovals, TheCaller, TheTenant, TheTurns
from gateway.schemas import Limit, response_of
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision, resuming_turn
from orchestrator.turns.submission import DecisionReason, Identifier, RequestBody
from orchestrator.types import SessionId

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])


class Approval(response_of(ApprovalRecord, without=ApprovalRecord.INTERNAL)):
    """An approval request. `cause`: why an approval was required. `reason`: the decider's explanation."""


class DecidedApproval(Approval):
    resumed_by: str = Field(description="ID of the turn that continues the flow.")


class ApprovalDecision(RequestBody):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"decision": "grant", "reason": "within the budget"}]}
    )

    decision: Literal["grant", "deny"]
    reason: DecisionReason | None = None
    decided_by: Identifier | None = None


@router.get("", response_model=list[Approval])
async def list_approvals(
    approvals: TheApprovals,
    tenant: TheTenant,
    session_id: SessionId | None = None,
    status: ApprovalStatus | None = None,
    limit: Limit = 100,
) -> list[ApprovalRecord]:
    """List approvals, newest first. Use `status=pending` for approvals without a decision."""
    return await approvals.list(tenant, session_id=session_id, status=status, limit=limit)


@router.post("/{approval_id}")
async def decide_approval(
    approval_id: str, body: ApprovalDecision, approvals: TheApprovals, turns: TheTurns, caller: TheCaller
) -> DecidedApproval:
    """Grant or deny an approval, and resume its flow. A repeated decision has no further effect.

    Only operators can grant an approval with `operator_only`.
    """
    granted = body.decision == "grant"
    decision = Decision(granted, caller.decider(body.decided_by), body.reason, by_operator=caller.operates)
    asked = await approvals.get(caller.tenant_id, approval_id)
    if not decision.suffices(operator_only=asked.operator_only):
        caller.require_operator()
    record = await approvals.decide(caller.tenant_id, approval_id, decision)
    receipt = await turns.submit(resuming_turn(caller.tenant_id, record, granted=granted))
    return DecidedApproval(**Approval.model_validate(record).model_dump(), resumed_by=receipt.turn_id)
