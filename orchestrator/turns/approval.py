"""Approvals as they are kept for good: what was asked, who decided, what became of it (PX-17). Records only."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from orchestrator.types import FlowId, JsonObject, SessionId, ToolId, TurnId

PERSON = ToolId("person")
"""Stands in the place of the tool where what is asked for is somebody's attention (AM-5)."""


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    """Nobody has decided; without a decision before it expires the answer is no."""
    GRANTED = "granted"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"
    """The call it was asked for is no longer the one to be made: a correction, a new plan, the flow's end."""
    USED = "used"
    """The call was made; it allows no other."""


APPROVAL_TRANSITIONS: dict[ApprovalStatus, frozenset[ApprovalStatus]] = {
    ApprovalStatus.PENDING: frozenset(
        {ApprovalStatus.GRANTED, ApprovalStatus.DENIED, ApprovalStatus.EXPIRED, ApprovalStatus.VOID}
    ),
    ApprovalStatus.GRANTED: frozenset({ApprovalStatus.USED, ApprovalStatus.VOID, ApprovalStatus.EXPIRED}),
    ApprovalStatus.DENIED: frozenset(),
    ApprovalStatus.EXPIRED: frozenset(),
    ApprovalStatus.VOID: frozenset(),
    ApprovalStatus.USED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """One question for approval. `fingerprint` binds it to the call, the plan and the policy.

    `cause`: why it was asked. `reason`: what the decider said.
    """

    approval_id: str
    session_id: SessionId
    turn_id: TurnId
    flow_id: FlowId
    tool_id: ToolId
    fingerprint: str
    arguments: JsonObject
    expires_at: datetime
    question: str = ""
    cause: str = ""
    plan_revision: int = 0
    policy_version: str = ""
    status: ApprovalStatus = ApprovalStatus.PENDING
    decided_by: str | None = None
    reason: str | None = None
    created_at: datetime | None = None
    decided_at: datetime | None = None
    closed_at: datetime | None = None
    operator_only: bool = False
    """Only an operator may grant it; the user may still deny it."""

    def status_at(self, now: datetime) -> ApprovalStatus:
        """Its status, with the time that has passed taken into account."""
        expired = self.status is ApprovalStatus.PENDING and now >= self.expires_at
        return ApprovalStatus.EXPIRED if expired else self.status


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody decided. `now`: unix seconds by the decider's clock; None: the store's own.

    `by_operator`: whoever decides may also grant what users may not.
    """

    granted: bool
    decided_by: str
    reason: str | None = None
    now: float | None = None
    by_operator: bool = False

    def suffices(self, *, operator_only: bool) -> bool:
        """Whether this decides such an approval."""
        return self.by_operator or not self.granted or not operator_only

    @property
    def status(self) -> ApprovalStatus:
        return ApprovalStatus.GRANTED if self.granted else ApprovalStatus.DENIED


@dataclass(frozen=True, slots=True)
class ClosedApproval:
    """What became of an approval in a turn: used, expired or void."""

    approval_id: str
    status: ApprovalStatus


def from_unix(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def tell_refusal(record: ApprovalRecord, now: datetime) -> str:
    """Why a decision on it comes too late."""
    match record.status_at(now):
        case ApprovalStatus.EXPIRED:
            return "This approval has expired; nothing was done. It is asked again when the task is."
        case ApprovalStatus.PENDING:
            return "Only an operator can grant this approval."
        case ApprovalStatus.VOID:
            return "This approval is void: what it was asked for has changed."
        case status:
            return f"This approval was {status.value} already, by {record.decided_by or 'somebody'}."
