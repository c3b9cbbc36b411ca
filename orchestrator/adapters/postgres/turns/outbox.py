"""The PostgreSQL outbox. Commits add messages, and other components send them."""

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.ports.outbox import OutboxMessage


class PostgresOutbox:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
        arguments = {"kinds": list(kinds), "again_after_s": again_after_s, "limit": limit}
        rows = await self._database.fetch_all(statement("take_outbox"), arguments)
        found = (OutboxMessage(*facts, payload=body) for *facts, body in rows)
        return sorted(found, key=lambda message: message.id)

    async def acknowledge(self, ids: list[int]) -> None:
        await self._database.fetch_all(statement("acknowledge_outbox"), {"ids": ids})
