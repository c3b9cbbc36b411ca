"""Search for turns across a tenant's sessions, and statistics by day and user, in PostgreSQL.

The search has no index, because every turn would have to update it. A statement reads the tenant's newest
turns, up to a limit.
"""

from dataclasses import asdict
from datetime import datetime
from typing import Final

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import run_named, statement
from orchestrator.turns.search import FoundTurns, TurnFilter, turn_id_at
from orchestrator.types import JsonObject, TenantId, TurnId

MOST_SEARCHED: Final = 2_000
"""Maximum number of turns searched for one page."""
MOST_COUNTED: Final = 20_000
"""Maximum number of turns in a count by day or user, newest first."""
_NOW: Final = TurnId("turn_g")
"""A value above all turn IDs, because ``g`` sorts after all hexadecimal digits."""


class PostgresTurnSearch:
    """Search over a tenant's turns. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(
        self,
        tenant_id: TenantId,
        wanted: TurnFilter,
        *,
        since: datetime,
        before: TurnId | None = None,
        limit: int = 50,
        most_searched: int = MOST_SEARCHED,
    ) -> FoundTurns:
        """Return up to `limit` matching turns accepted since `since`, with IDs below `before`.

        A page can be empty even if more pages follow.
        """
        arguments = {
            **asdict(wanted),
            "words": [f"%{_literally(word)}%" for word in wanted.words],
            **_span(tenant_id, since, before, most_searched),
            "most_found": limit,
        }
        row = await self._database.fetch_one(statement("search_turns"), arguments)
        found, oldest = row or ([], None)
        return FoundTurns(found, TurnId(found[-1]["turn_id"]) if len(found) == limit else oldest)

    async def by_day(self, tenant_id: TenantId, *, since: datetime) -> list[JsonObject]:
        """Return turns, failures, median time, cost and other metrics by day, oldest day first."""
        return await self._count("turns_by_day", _span(tenant_id, since, None, MOST_COUNTED))

    async def by_user(self, tenant_id: TenantId, *, since: datetime, limit: int) -> list[JsonObject]:
        """Return turns, failures, cost and other metrics for up to `limit` users, most expensive first.

        All sessions without a user count as one user.
        """
        arguments = _span(tenant_id, since, None, MOST_COUNTED) | {"most_found": limit}
        return await self._count("turns_by_user", arguments)

    async def _count(self, name: str, arguments: JsonObject) -> list[JsonObject]:
        async with self._database.transaction() as connection:
            rows = await run_named(connection, name, **arguments)
        return [dict(row) for row in rows.mappings()]


def _span(tenant_id: TenantId, since: datetime, before: TurnId | None, most: int) -> JsonObject:
    return {"tenant_id": tenant_id, "since": turn_id_at(since), "before": before or _NOW, "most": most}


def _literally(word: str) -> str:
    """Return a LIKE pattern that matches only the word itself."""
    return word.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
