from pydantic import Field

from gateway.responses.common import response_of
from orchestrator.turns.approval import ApprovalRecord


class Approval(response_of(ApprovalRecord, without=ApprovalRecord.INTERNAL)):
    """An approval request. `cause`: why an approval was required. `reason`: the decider's explanation."""


class DecidedApproval(Approval):
    resumed_by: str = Field(description="ID of the turn that continues the flow.")
