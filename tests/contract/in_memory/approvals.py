"""Approvals of a `MemoryStore`."""

from __future__ import annotations

from orchestrator.errors import NotFound, Refused
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision, explain_refusal, from_unix
from orchestrator.types import SessionId, TenantId
from parley.testing.lane import decide_approval
from parley.testing.store import MemoryStore


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
            raise Refused(explain_refusal(record, now))
        return record
