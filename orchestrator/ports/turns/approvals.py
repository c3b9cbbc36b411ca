"""Approvals as operators see them: list, look, decide (PX-17). The flow goes on in a turn of its session."""

from __future__ import annotations

from typing import Protocol

from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision
from orchestrator.types import SessionId, TenantId


class Approvals(Protocol):
    """Questions for approval as operators see them (PX-17). Every method raises Unavailable."""

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: ApprovalStatus | None = None,
        limit: int = 100,
    ) -> list[ApprovalRecord]:
        """Newest first; what has expired says so."""
        ...

    async def get(self, tenant_id: TenantId, approval_id: str) -> ApprovalRecord:
        """Raises NotFound."""
        ...

    async def decide(self, tenant_id: TenantId, approval_id: str, decision: Decision) -> ApprovalRecord:
        """Grant or deny a pending approval, once; the same decision again gives the first one.

        Raises:
            NotFound: there is no such approval.
            Refused: it was decided otherwise, has expired, or is void; or only an operator may grant it.
        """
        ...
