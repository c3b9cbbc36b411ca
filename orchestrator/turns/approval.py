"""Stored approvals: the question, the decision and the outcome (PX-17)."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import ClassVar

from orchestrator.turns.turn import IfBusy, Submission, TurnInput, TurnKind
from orchestrator.types import FlowId, JsonObject, SessionId, TenantId, ToolId, TurnId, as_json

PERSON = ToolId("person")
"""Tool ID of approvals that request a human handoff, which has no tool (AM-5)."""


class ApprovalStatus(StrEnum):
    PENDING = "pending"
    """Undecided, or expired before a decision but not closed yet."""
    GRANTED = "granted"
    DENIED = "denied"
    EXPIRED = "expired"
    VOID = "void"
    """The call is no longer wanted, because of a correction, a new plan or the end of the flow."""
    USED = "used"
    """The call was made. The approval can't be used again."""


APPROVAL_TRANSITIONS: dict[ApprovalStatus, frozenset[ApprovalStatus]] = {
    ApprovalStatus.PENDING: frozenset(
        {ApprovalStatus.GRANTED, ApprovalStatus.DENIED, ApprovalStatus.EXPIRED, ApprovalStatus.VOID}
    ),
    ApprovalStatus.GRANTED: frozenset({ApprovalStatus.USED, ApprovalStatus.VOID, ApprovalStatus.EXPIRED}),
}
"""Permitted transitions. Other statuses are final."""


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """A request for approval of a call.

    `fingerprint`: binds the approval to the call, the plan and the policy. `cause`: why approval is required.
    `reason`: the decider's explanation.
    """

    INTERNAL: ClassVar = frozenset({"fingerprint", "plan_revision", "policy_version"})
    """Fields that the APIs don't show."""

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
    """True if only an operator can grant the approval. The user can still deny it."""

    def as_json(self) -> JsonObject:
        return as_json(self, without=self.INTERNAL)

    def status_at(self, now: datetime) -> ApprovalStatus:
        """Return the status at `now`. A pending approval that has expired is EXPIRED."""
        expired = self.status is ApprovalStatus.PENDING and now >= self.expires_at
        return ApprovalStatus.EXPIRED if expired else self.status


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about an approval.

    `now`: Unix seconds on the decider's clock, or None for the store's clock. `by_operator`: True if the
    decider can grant approvals that are reserved for operators.
    """

    granted: bool
    decided_by: str
    reason: str | None = None
    now: float | None = None
    by_operator: bool = False

    def suffices(self, *, operator_only: bool) -> bool:
        """Return whether the decider may make this decision. Only operators can grant `operator_only` approvals."""
        return self.by_operator or not self.granted or not operator_only

    @property
    def status(self) -> ApprovalStatus:
        return ApprovalStatus.GRANTED if self.granted else ApprovalStatus.DENIED


@dataclass(frozen=True, slots=True)
class ClosedApproval:
    """An approval that a turn closed: used, expired or void."""

    approval_id: str
    status: ApprovalStatus


def from_unix(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def explain_refusal(record: ApprovalRecord, now: datetime) -> str:
    match record.status_at(now):
        case ApprovalStatus.EXPIRED:
            return "This approval has expired; nothing was done. Repeat the task to request a new one."
        case ApprovalStatus.PENDING:
            return "Only an operator can grant this approval."
        case ApprovalStatus.VOID:
            return "This approval is void because the call has changed."
        case status:
            return (
                f"This approval was already {status.value} by {record.decided_by or 'an unknown operator'}."
            )


def resuming_turn(tenant: TenantId, record: ApprovalRecord, *, granted: bool) -> Submission:
    """Return the turn that resumes the flow after a decision. Repeated decisions share its idempotency key."""
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
