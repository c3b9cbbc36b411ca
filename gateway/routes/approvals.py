"""Approvals: list what waits, decide. The flow goes on in a turn of its session (PX-17)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from gateway import shapes
from gateway.doors import TheCaller, TheDoors, TheTenant
from gateway.schemas import ApprovalDecision
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision
from orchestrator.turns.turn import FINISHED, IfBusy, Submission, TurnInput, TurnKind
from orchestrator.types import JsonObject, SessionId, TenantId

router = APIRouter(prefix="/v1/approvals", tags=["approvals"])


def approval_object(record: ApprovalRecord) -> JsonObject:
    """An approval as it is shown: what was asked and why, who decided, what became of it."""
    times = {
        name: None if at is None else at.isoformat()
        for name, at in (
            ("created_at", record.created_at),
            ("expires_at", record.expires_at),
            ("decided_at", record.decided_at),
            ("closed_at", record.closed_at),
        )
    }
    return {
        "approval_id": record.approval_id,
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "flow_id": record.flow_id,
        "tool_id": record.tool_id,
        "arguments": record.arguments,
        "question": record.question,
        "cause": record.cause,
        "status": record.status.value,
        "decided_by": record.decided_by,
        "reason": record.reason,
        "operator_only": record.operator_only,
        **times,
    }


@router.get("", responses={200: {"model": list[shapes.Approval]}})
async def list_approvals(
    doors: TheDoors,
    tenant: TheTenant,
    session_id: SessionId | None = None,
    status: ApprovalStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[JsonObject]:
    """Newest first; with `status=pending` those that somebody still has to decide."""
    found = await doors.approvals.list(tenant, session_id=session_id, status=status, limit=limit)
    return [approval_object(record) for record in found]


@router.post("/{approval_id}", responses={200: {"model": shapes.DecidedApproval}})
async def decide_approval(
    approval_id: str, body: ApprovalDecision, doors: TheDoors, caller: TheCaller
) -> JsonObject:
    """Grant or deny, once. The same decision again has no further effect.

    What is marked `operator_only` is granted by operators alone.
    """
    granted = body.decision == "grant"
    decision = Decision(granted, caller.decider(body.decided_by), body.reason, by_operator=caller.operates)
    asked = await doors.approvals.get(caller.tenant_id, approval_id)
    if not decision.suffices(operator_only=asked.operator_only):
        caller.require_operator()
    record = await doors.approvals.decide(caller.tenant_id, approval_id, decision)
    turn_id = await _tell_session(doors, caller.tenant_id, record, granted=granted)
    return {**approval_object(record), "resumed_by": turn_id}


async def _tell_session(doors: TheDoors, tenant: TenantId, record: ApprovalRecord, *, granted: bool) -> str:
    """Submit the turn in which the flow goes on; a repeated call finds the first one."""
    action = {
        "name": "approve" if granted else "deny",
        "payload": {"flow_id": record.flow_id, "approval_id": record.approval_id},
    }
    receipt = await doors.inbox.submit(
        Submission(
            session_id=record.session_id,
            input=TurnInput(action=action, form="action", kind=TurnKind.SYSTEM),
            tenant_id=tenant,
            idempotency_key=f"approval:{record.approval_id}",
            if_busy=IfBusy.ENQUEUE,
        )
    )
    if receipt.status not in FINISHED:
        await doors.wakeup.offer(record.session_id)
    return receipt.turn_id
