"""The outbox on PostgreSQL. Commits fill it; what sending means is not known here."""

from __future__ import annotations

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.types import SessionId, TenantId, TurnId


class PostgresOutbox:
    """Implements `ports.outbox.Outbox`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
        """See `Outbox`."""
        arguments = {"kinds": list(kinds), "again_after_s": again_after_s, "limit": limit}
        rows = await self._database.fetch_all(statement("take_outbox"), arguments)
        return [
            OutboxMessage(
                id=row[0],
                tenant_id=TenantId(row[1]),
                session_id=SessionId(row[2]),
                turn_id=None if row[3] is None else TurnId(row[3]),
                kind=row[4],
                payload=row[5],
            )
            for row in sorted(rows, key=lambda row: row[0])
        ]

    async def acknowledge(self, ids: list[int]) -> None:
        """See `Outbox`."""
        await self._database.fetch_all(statement("acknowledge_outbox"), {"ids": ids})
