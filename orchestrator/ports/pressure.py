"""Whether housekeeping should stand back while turns wait for workers (IF-14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from orchestrator.types import SessionId, TenantId


@dataclass(frozen=True, slots=True)
class Debt:
    """Housekeeping of a session that is due and put off: how many runs, and for how long the oldest."""

    session_id: SessionId | None
    runs: int
    oldest_s: float


class Pressure(Protocol):
    """Whether housekeeping should stand back (IF-14). Every method raises Unavailable."""

    async def turn_wait_s(self) -> float:
        """The 95th percentile of what turns of the last seconds waited for a worker."""
        ...

    async def housekeeping_debt(self, tenant_id: TenantId | None = None, *, limit: int = 100) -> list[Debt]:
        """What is put off, by session, the oldest first; of one tenant or all."""
        ...
