"""How long turns wait at present, and what housekeeping is deferred for them (IF-14)."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.types import SessionId, TenantId

SINCE_S = 5.0
NEWEST_TURNS = 200


@dataclass(frozen=True, slots=True)
class Debt:
    """Housekeeping of a session that is due and deferred: how many runs, and for how long the oldest."""

    session_id: SessionId | None
    runs: int
    oldest_s: float


class PostgresLoad:
    """Every method raises Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def turn_wait_s(self) -> float:
        """The 95th percentile of what turns of the last seconds waited for a worker."""
        arguments = {"since_s": SINCE_S, "newest": NEWEST_TURNS}
        row = await self._database.fetch_one(statement("turn_wait"), arguments)
        return 0.0 if row is None or row[0] is None else row[0]

    async def housekeeping_debt(self, tenant_id: TenantId | None = None, *, limit: int = 100) -> list[Debt]:
        """Deferred runs by session, the oldest first; of one tenant or all."""
        arguments = {"tenant_id": tenant_id, "limit": limit}
        rows = await self._database.fetch_all(statement("run_debt"), arguments)
        return [Debt(*row) for row in rows]
