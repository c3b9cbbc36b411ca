"""Preferences of users, on PostgreSQL (CO-4)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Delete, Update, delete, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.rows import record_of
from orchestrator.adapters.postgres.tables import preferences
from orchestrator.ports.memory.preferences import (
    EVERYTHING,
    MOST_PREFERENCES,
    Preference,
    PreferenceKind,
    Source,
)
from orchestrator.types import TenantId, UserId

TO_BE_ERASED = "forgotten"
"""The source of what is forgotten and may still stand elsewhere."""
ERASED = "erased"
"""The source of what was forgotten and stands nowhere: its key alone is left, so that no habit brings it back."""
_COLUMNS = preferences.c
_KNOWN = _COLUMNS.source.not_in((TO_BE_ERASED, ERASED))
_TRIM = text(
    "DELETE FROM preferences WHERE tenant_id = :tenant_id AND user_id = :user_id AND key IN"
    " (SELECT key FROM preferences WHERE tenant_id = :tenant_id AND user_id = :user_id AND source <> 'forgotten'"
    " ORDER BY source = 'explicit' DESC, source = 'erased', updated_at DESC, key OFFSET :most)"
)


class PostgresPreferences:
    """Implements `ports.memory.preferences.PreferenceStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_user(self, tenant_id: TenantId, user_id: UserId) -> list[Preference]:
        query = (
            select(preferences, func.extract("epoch", _COLUMNS.updated_at).label("at"))
            .where(_COLUMNS.tenant_id == tenant_id, _COLUMNS.user_id == user_id, _KNOWN)
            .order_by(_COLUMNS.key.collate("C"))
        )
        return [record_of(Preference, row, updated_at=row.at) for row in await self._database.read_all(query)]

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
        return await self._database.write(_forget(tenant_id, user_id).where(_COLUMNS.key.in_(keys)))

    async def forget_everything(self, tenant_id: TenantId, user_id: UserId) -> int:
        async with self._database.transaction() as connection:
            marked: Any = await connection.execute(_forget(tenant_id, user_id))
            mark = Preference(EVERYTHING, PreferenceKind.NOTE, Source.EXPLICIT)
            row = {"tenant_id": tenant_id, "user_id": user_id, **_values(mark), "source": TO_BE_ERASED}
            again = {"source": TO_BE_ERASED, "updated_at": func.clock_timestamp()}
            await connection.execute(
                insert(preferences).values(row).on_conflict_do_update(index_elements=_KEY, set_=again)
            )
        return marked.rowcount

    async def replace(
        self, tenant_id: TenantId, user_id: UserId, preferences: tuple[Preference, ...]
    ) -> None:
        if not preferences:
            await self.forget_everything(tenant_id, user_id)
            return
        async with self._database.transaction() as connection:
            await connection.execute(_delete(tenant_id, user_id, tuple(one.key for one in preferences)))
            await connection.execute(_forget(tenant_id, user_id))
            await _write(connection, tenant_id, user_id, preferences)


_KEY = (_COLUMNS.tenant_id, _COLUMNS.user_id, _COLUMNS.key)


def _forget(tenant_id: TenantId, user_id: UserId) -> Update:
    return (
        update(preferences)
        .where(_COLUMNS.tenant_id == tenant_id, _COLUMNS.user_id == user_id, _KNOWN)
        .values(source=TO_BE_ERASED, updated_at=func.clock_timestamp())
    )


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
    statement = insert(preferences).values(list(rows.values()))
    given = statement.excluded
    statement = statement.on_conflict_do_update(
        index_elements=_KEY,
        set_={
            **{name: given[name] for name in ("value", "kind", "source", "text", "labels", "origin")},
            "updated_at": func.clock_timestamp(),
        },
        where=or_(
            _COLUMNS.source.not_in((Source.EXPLICIT.value, TO_BE_ERASED)),
            given.source == Source.EXPLICIT.value,
        ),
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
