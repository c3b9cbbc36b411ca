"""Preferences of users, on PostgreSQL (CO-4)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.rows import record_of
from orchestrator.adapters.postgres.tables import preferences
from orchestrator.ports.memory.preferences import MOST_PREFERENCES, Preference, Source
from orchestrator.types import TenantId, UserId

_COLUMNS = preferences.c
_TRIM = text(
    "DELETE FROM preferences WHERE tenant_id = :tenant_id AND user_id = :user_id AND key IN"
    " (SELECT key FROM preferences WHERE tenant_id = :tenant_id AND user_id = :user_id"
    " ORDER BY source = 'explicit' DESC, updated_at DESC, key OFFSET :most)"
)


class PostgresPreferences:
    """Implements `ports.memory.preferences.PreferenceStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        query = (
            select(preferences, func.extract("epoch", _COLUMNS.updated_at).label("at"))
            .where(_COLUMNS.tenant_id == tenant_id, _COLUMNS.user_id == user_id)
            .order_by(_COLUMNS.key.collate("C"))
        )
        return [record_of(Preference, row, updated_at=row.at) for row in await self._database.read_all(query)]

    async def remember(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        async with self._database.transaction() as connection:
            await _write(connection, tenant_id, user_id, preferences)

    async def forget(self, tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...]) -> int:
        statement = delete(preferences).where(
            _COLUMNS.tenant_id == tenant_id, _COLUMNS.user_id == user_id, _COLUMNS.key.in_(keys)
        )
        return await self._database.write(statement)

    async def replace(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        async with self._database.transaction() as connection:
            await connection.execute(_all_of(tenant_id, user_id))
            await _write(connection, tenant_id, user_id, preferences)


def _all_of(tenant_id: TenantId, user_id: UserId) -> Any:
    return delete(preferences).where(_COLUMNS.tenant_id == tenant_id, _COLUMNS.user_id == user_id)


async def _write(
    connection: AsyncConnection, tenant_id: TenantId, user_id: UserId, new: tuple[Preference, ...]
) -> None:
    names = {"tenant_id": tenant_id, "user_id": user_id}
    rows = {one.key: {**names, **_values(one)} for one in new}
    if not rows:
        return
    statement = insert(preferences).values(list(rows.values()))
    given = statement.excluded
    statement = statement.on_conflict_do_update(
        index_elements=[_COLUMNS.tenant_id, _COLUMNS.user_id, _COLUMNS.key],
        set_={
            **{name: given[name] for name in ("value", "kind", "source", "text", "labels", "origin")},
            "updated_at": func.clock_timestamp(),
        },
        where=or_(_COLUMNS.source != Source.EXPLICIT.value, given.source == Source.EXPLICIT.value),
    )
    await connection.execute(statement)
    await connection.execute(_TRIM, {**names, "most": MOST_PREFERENCES})


def _values(one: Preference) -> dict[str, Any]:
    return {
        "key": one.key,
        "value": one.value,
        "kind": one.kind.value,
        "source": one.source.value,
        "text": one.text,
        "labels": list(one.labels),
        "origin": one.origin,
    }
