"""How the system stands, read by one statement of `sql/standing.sql`."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.adapters.postgres.pool import Database, translated
from orchestrator.adapters.postgres.sql import statement
from orchestrator.ports.standing import Queue, Standing


class PostgresStanding:
    """Implements `ports.standing.ReadStanding`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self) -> Standing:
        with translated():
            row = await self._database.fetch_one(statement("standing"), {})
        assert row is not None
        *counts, outbox, runs, failing, given_up = row
        return Standing(
            *counts,
            outbox=_queues(outbox),
            runs=_queues(runs),
            webhooks_failing=failing,
            webhooks_given_up=given_up,
        )


def _queues(found: Mapping[str, tuple[int, float]]) -> dict[str, Queue]:
    return {name: Queue(waiting, float(age or 0.0)) for name, (waiting, age) in found.items()}
