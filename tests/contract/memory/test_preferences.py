"""Preferences on both stores (CO-4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from orchestrator.adapters.postgres.memory.preferences import PostgresPreferences
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.ports.memory.preferences import (
    MOST_PREFERENCES,
    Preference,
    PreferenceKind,
    PreferenceStore,
    Source,
)
from orchestrator.types import TenantId, UserId
from parley.testing.memory import MemoryPreferences

ADA, BOB = UserId("ada"), UserId("bob")
AISLE = Preference(
    key="*.seat_position",
    kind=PreferenceKind.RULE,
    source=Source.EXPLICIT,
    value="aisle",
    text="prefers aisle seats",
    labels=("private",),
    origin={"session_id": "s1", "turn_id": "t1"},
)


@pytest.fixture(params=["memory", "postgres"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[PreferenceStore]:
    if request.param == "memory":
        yield MemoryPreferences()
        return
    url = request.getfixturevalue("database_url")
    migrate(url)
    async with Database(url) as database:
        yield PostgresPreferences(database)


async def keys(store: PreferenceStore, tenant: TenantId, user: UserId = ADA) -> list[str]:
    return [one.key for one in await store.of_user(tenant, user)]


async def test_what_is_remembered_comes_back_whole(store: PreferenceStore, tenant: TenantId) -> None:
    await store.remember(tenant, ADA, (AISLE,))
    [found] = await store.of_user(tenant, ADA)

    assert replace(found, updated_at=0.0) == AISLE
    assert await store.of_user(tenant, BOB) == []
    assert await store.of_user(TenantId("stranger"), ADA) == []


async def test_many_users_are_read_at_once(database_url: str, tenant: TenantId) -> None:
    """Users of different tenants can have the same name."""
    migrate(database_url)
    other = TenantId("stranger")
    async with Database(database_url) as database:
        store = PostgresPreferences(database)
        await store.remember(tenant, ADA, (AISLE, replace(AISLE, key="*.meal")))
        await store.remember(other, BOB, (AISLE,))
        found = await store.of_users([(tenant, ADA), (tenant, BOB), (other, ADA)])

        assert found == {(tenant, ADA): await store.of_user(tenant, ADA), (tenant, BOB): [], (other, ADA): []}
        assert [one.key for one in found[tenant, ADA]] == ["*.meal", AISLE.key]
        assert await store.of_users([]) == {}


async def test_a_habit_never_replaces_what_the_user_said(store: PreferenceStore, tenant: TenantId) -> None:
    habit = replace(AISLE, source=Source.HABIT, value="window")
    await store.remember(tenant, ADA, (habit,))
    await store.remember(tenant, ADA, (AISLE,))
    await store.remember(tenant, ADA, (habit,))
    assert [one.value for one in await store.of_user(tenant, ADA)] == ["aisle"]

    await store.remember(tenant, ADA, (replace(AISLE, value="middle"),))
    assert [one.value for one in await store.of_user(tenant, ADA)] == ["middle"]


async def test_forgetting_names_keys(store: PreferenceStore, tenant: TenantId) -> None:
    await store.remember(tenant, ADA, (AISLE, replace(AISLE, key="*.cabin", value=["business"])))

    assert await store.forget(tenant, ADA, ("*.seat_position", "*.unknown")) == 1
    assert await store.forget(tenant, BOB, ("*.cabin",)) == 0
    assert await keys(store, tenant) == ["*.cabin"]


async def test_replacing_leaves_nothing_else(store: PreferenceStore, tenant: TenantId) -> None:
    await store.remember(tenant, ADA, (AISLE,))
    await store.replace(tenant, ADA, (replace(AISLE, key="*.cabin", source=Source.INFERRED),))
    assert await keys(store, tenant) == ["*.cabin"]

    await store.replace(tenant, ADA, ())
    assert await keys(store, tenant) == []


async def test_a_full_memory_lets_go_of_inferences_first(store: PreferenceStore, tenant: TenantId) -> None:
    many = tuple(
        replace(AISLE, key=f"habit.{number:03}", source=Source.HABIT) for number in range(MOST_PREFERENCES)
    )
    await store.remember(tenant, ADA, (AISLE,))
    await store.remember(tenant, ADA, many)
    found = await keys(store, tenant)

    assert len(found) == MOST_PREFERENCES
    assert AISLE.key in found
