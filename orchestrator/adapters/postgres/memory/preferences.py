"""User preferences in PostgreSQL (CO-4)."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Delete, Row, delete, func, insert, or_, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import run_named
from orchestrator.adapters.postgres.tables import any_of, forgotten_preferences, preferences, record_of
from orchestrator.ports.memory.preferences import (
    EVERYTHING,
    MOST_PREFERENCES,
    Preference,
    PreferenceKind,
    Source,
)
from orchestrator.types import TenantId, UserId

_COLUMNS = preferences.c


class PostgresPreferences:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        rows = await self._find(_COLUMNS.tenant_id == tenant_id, _COLUMNS.user_id == user_id)
        return [preference for _, preference in rows]

    async def of_users(
        self, owners: Collection[tuple[TenantId, UserId]]
    ) -> dict[tuple[TenantId, UserId], list[Preference]]:
        found = {owner: list[Preference]() for owner in owners}
        tenants, users = {tenant_id for tenant_id, _ in owners}, {user_id for _, user_id in owners}
        which = _COLUMNS.tenant_id == any_of(tenants), _COLUMNS.user_id == any_of(users)
        for row, preference in await self._find(*which):
            if (
                owner := (row.tenant_id, row.user_id)
            ) in found:  # users of different tenants can have the same ID
                found[owner].append(preference)
        return found

    async def _find(self, *which: ColumnElement[bool]) -> list[tuple[Row[Any], Preference]]:
        query = (
            select(preferences, func.extract("epoch", _COLUMNS.updated_at).label("at"))
            .where(*which)
            .order_by(_COLUMNS.key.collate("C"))
        )
        rows = await self._database.read_all(query)
        return [(row, record_of(Preference, row, updated_at=row.at)) for row in rows]

    async def remember(
        self,
        tenant_id: TenantId,
        user_id: UserId,
        preferences: tuple[Preference, ...],
        *,
        instead_of: tuple[str, ...] = (),
    ) -> None:
        async with self._database.transaction() as connection:
            if instead_of:
                await connection.execute(_delete(tenant_id, user_id, instead_of))
            await _write(connection, tenant_id, user_id, preferences)

    async def forget(self, tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...]) -> int:
        async with self._database.transaction() as connection:
            return await _forget(connection, tenant_id, user_id, keys)

    async def forget_everything(self, tenant_id: TenantId, user_id: UserId) -> int:
        async with self._database.transaction() as connection:
            count = await _forget(connection, tenant_id, user_id)
            mark = _values(Preference(EVERYTHING, PreferenceKind.NOTE, Source.EXPLICIT))
            kept = {name: mark[name] for name in ("key", "kind", "value", "text", "origin")}
            await connection.execute(
                insert(forgotten_preferences).values(tenant_id=tenant_id, user_id=user_id, **kept)
            )
        return count

    async def replace(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        if not preferences:
            await self.forget_everything(tenant_id, user_id)
            return
        async with self._database.transaction() as connection:
            await connection.execute(_delete(tenant_id, user_id, tuple(one.key for one in preferences)))
            await _forget(connection, tenant_id, user_id)
            await _write(connection, tenant_id, user_id, preferences)


_KEY = (_COLUMNS.tenant_id, _COLUMNS.user_id, _COLUMNS.key)


async def _forget(
    connection: AsyncConnection, tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...] | None = None
) -> int:
    """Move preferences to the table of forgotten preferences and return their number.

    `keys`: the preferences to move. Default: all of the user's preferences.
    """
    named = {"tenant_id": tenant_id, "user_id": user_id, "keys": None if keys is None else list(keys)}
    return (await run_named(connection, "forget_preferences", **named)).rowcount


def _delete(tenant_id: TenantId, user_id: UserId, keys: tuple[str, ...]) -> Delete:
    return delete(preferences).where(
        _COLUMNS.tenant_id == tenant_id, _COLUMNS.user_id == user_id, _COLUMNS.key.in_(keys)
    )


async def _write(
    connection: AsyncConnection, tenant_id: TenantId, user_id: UserId, new: tuple[Preference, ...]
) -> None:
    names = {"tenant_id": tenant_id, "user_id": user_id}
    rows = {one.key: {**names, **_values(one)} for one in new}
    if not rows:
        return
    statement = upsert(preferences).values(list(rows.values()))
    given = statement.excluded
    statement = statement.on_conflict_do_update(
        index_elements=_KEY,
        set_={
            **{name: given[name] for name in ("value", "kind", "source", "text", "labels", "origin")},
            "updated_at": func.clock_timestamp(),
        },
        where=or_(_COLUMNS.source != Source.EXPLICIT.value, given.source == Source.EXPLICIT.value),
    )
    await connection.execute(statement)
    await run_named(connection, "trim_preferences", **names, most=MOST_PREFERENCES)


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
