"""Approval responses."""

from pydantic import Field

from gateway.responses.common import response_of
from orchestrator.turns.approval import ApprovalRecord


class Approval(response_of(ApprovalRecord, without=("fingerprint", "plan_revision", "policy_version"))):
    """An approval request. `cause`: why an approval was required. `reason`: the decider's explanation."""


class DecidedApproval(Approval):
    resumed_by: str = Field(description="The turn in which the flow continues.")
