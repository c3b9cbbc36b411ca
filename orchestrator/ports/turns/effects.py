"""Reading the ledger of effects from outside a turn; within one it is the lane's, under its fence (RT-10)."""

from __future__ import annotations

from typing import Protocol

from orchestrator.turns.effect import LedgerEntry
from orchestrator.types import SessionId, TenantId


class Effects(Protocol):
    """The ledger of a session: what tools changed outside (RT-10)."""

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        """List what tools did for a session, oldest first. Raises NotFound for a session that is not there."""
        ...
