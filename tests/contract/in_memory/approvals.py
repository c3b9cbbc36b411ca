"""Approvals of a `MemoryStore`: asked for by turns, decided by people."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.errors import NotFound, Refused
from orchestrator.testing.store import MemoryStore
from orchestrator.turns.approval import (
    APPROVAL_TRANSITIONS,
    ApprovalRecord,
    ApprovalStatus,
    Decision,
    from_unix,
    tell_refusal,
)
from orchestrator.turns.lease import TurnCommit
from orchestrator.types import SessionId, TenantId


class MemoryApprovals:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: ApprovalStatus | None = None,
        limit: int = 100,
    ) -> list[ApprovalRecord]:
        now = self._store.clock()
        found = [
            record
            for tenant, record in self._store.approvals.values()
            if tenant == tenant_id
            and session_id in {None, record.session_id}
            and status in {None, record.status_at(now)}
        ]
        return found[::-1][:limit]

    async def get(self, tenant_id: TenantId, approval_id: str) -> ApprovalRecord:
        tenant, record = self._store.approvals.get(approval_id, (None, None))
        if tenant != tenant_id or record is None:
            raise NotFound("approval", approval_id)
        return record

    async def decide(self, tenant_id: TenantId, approval_id: str, decision: Decision) -> ApprovalRecord:
        record = decide_approval(self._store, tenant_id, approval_id, decision)
        if record is None:
            raise NotFound("approval", approval_id)
        if record.status is not decision.status:
            now = self._store.clock() if decision.now is None else from_unix(decision.now)
            raise Refused(tell_refusal(record, now))
        return record


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
