"""How hard turns have it at present, and what housekeeping is put off for them (IF-14)."""

from __future__ import annotations

from orchestrator.adapters.postgres.pool import Database, translated
from orchestrator.adapters.postgres.statements import statement
from orchestrator.ports.pressure import Debt
from orchestrator.types import SessionId, TenantId

SINCE_S = 5.0
LOOKED_AT = 200
"""Turns; the newest ones."""


class PostgresPressure:
    """Implements `ports.pressure.Pressure`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def turn_wait_s(self) -> float:
        arguments = {"since_s": SINCE_S, "looked_at": LOOKED_AT}
        with translated():
            row = await self._database.fetch_one(statement("turn_waits"), arguments)
        return 0.0 if row is None or row[0] is None else row[0]

    async def housekeeping_debt(self, tenant_id: TenantId | None = None, *, limit: int = 100) -> list[Debt]:
        with translated():
            rows = await self._database.fetch_all(
                statement("run_debt"), {"tenant_id": tenant_id, "limit": limit}
            )
        return [Debt(None if row[0] is None else SessionId(row[0]), row[1], row[2]) for row in rows]
