"""Approval responses."""

from pydantic import Field

from gateway.responses.common import JsonMap, ResponseModel, Timestamp
from orchestrator.turns.approval import ApprovalStatus


class Approval(ResponseModel):
    approval_id: str
    session_id: str
    turn_id: str
    flow_id: str
    tool_id: str
    arguments: JsonMap
    question: str
    cause: str
    status: ApprovalStatus
    decided_by: str | None
    reason: str | None
    operator_only: bool
    created_at: Timestamp | None
    expires_at: Timestamp | None
    decided_at: Timestamp | None
    closed_at: Timestamp | None


class DecidedApproval(Approval):
    resumed_by: str = Field(description="The turn in which the flow continues.")
