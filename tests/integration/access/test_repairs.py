"""RT-29: broken sessions are repaired on the real stores as in memory."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from orchestrator.adapters.postgres.claims import WorkerLock
from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.ports.lane import Lane
from orchestrator.turns.access import Scope
from orchestrator.types import DEFAULT_TENANT, TenantId
from tests.integration.gateway import open_house
from tests.unit.gateway.repairs.broken_sessions import KINDS, Site, break_one
from tests.unit.gateway.repairs.repairing import goes_on, judge, repair_one
from tests.unit.gateway.repairs.test_broken_sessions import BY, exceed

LONG = 90
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def site(database_url: str, redis_url: str) -> AsyncIterator[tuple[Site, dict[str, dict[str, str]]]]:
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(
            open_house(database_url, redis_url, auth="required", caller_rate=0, tenant_rate=0, session_rate=0)
        )
        callers = ((BY, DEFAULT_TENANT, Scope.OPERATOR), ("user", DEFAULT_TENANT, Scope.USER))
        headers = {}
        for name, tenant, scope in (*callers, ("other", TenantId("other"), Scope.OPERATOR)):
            _, text = await house.ports.stores.keys.create(tenant, name, frozenset({scope}))
            headers[name] = {"Authorization": f"Bearer {text}"}
        house.http.headers.update(headers[BY])
        house.http.timeout = 60

        async def make_lane(**options: Any) -> Lane:
            worker = await stack.enter_async_context(WorkerLock(database_url))
            return PostgresLane(house.ports.stores.database, worker, **options)

        found = Site(house.ports.stores.inbox, make_lane, house.http, house.ports.shared.live)
        await found.open()
        yield found, headers


async def _repair(place: tuple[Site, dict[str, dict[str, str]]], count: int) -> list[str]:
    (site, headers), numbers, found = place, random.Random(3), []
    for number in range(count):
        ticket = await break_one(site, number, numbers)
        found += await exceed(site, ticket, headers)
        wrong = await repair_one(site, ticket)
        found += wrong or await judge(site, ticket, BY)
        found += wrong or await goes_on(site, ticket)
    return found


async def test_one_of_each_kind_is_repaired(site: tuple[Site, dict[str, dict[str, str]]]) -> None:
    assert await _repair(site, len(KINDS)) == []


@pytest.mark.slow
async def test_many_are_repaired(site: tuple[Site, dict[str, dict[str, str]]]) -> None:
    assert await _repair(site, LONG) == []
