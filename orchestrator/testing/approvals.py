"""Decides and keeps approvals in a `MemoryStore`."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.testing.store import MemoryStore
from orchestrator.turns.approval import (
    APPROVAL_TRANSITIONS,
    ApprovalRecord,
    ApprovalStatus,
    Decision,
    from_unix,
)
from orchestrator.turns.lease import TurnCommit
from orchestrator.types import TenantId


def decide_approval(
    store: MemoryStore, tenant_id: TenantId, approval_id: str, decision: Decision
) -> ApprovalRecord | None:
    """Decide if nobody has and there is time; gives the approval as it then stands."""
    tenant, record = store.approvals.get(approval_id, (None, None))
    if tenant != tenant_id or record is None:
        return None
    now = store.clock() if decision.now is None else from_unix(decision.now)
    may = decision.suffices(operator_only=record.operator_only)
    if may and record.status_at(now) is ApprovalStatus.PENDING:
        record = replace(
            record,
            status=decision.status,
            decided_by=decision.decided_by,
            reason=decision.reason,
            decided_at=store.clock(),
        )
        store.approvals[approval_id] = (tenant_id, record)
    return record


def keep_approvals(store: MemoryStore, tenant_id: TenantId, commit: TurnCommit) -> None:
    """Keep what a commit says about approvals: those asked for, and what became of others."""
    now = store.clock()
    for record in commit.approvals:
        store.approvals.setdefault(record.approval_id, (tenant_id, replace(record, created_at=now)))
    for closed in commit.closed_approvals:
        tenant, record = store.approvals.get(closed.approval_id, (None, None))
        if tenant == tenant_id and record and closed.status in APPROVAL_TRANSITIONS[record.status]:
            changed = replace(record, status=closed.status, closed_at=now)
            store.approvals[closed.approval_id] = (tenant_id, changed)
