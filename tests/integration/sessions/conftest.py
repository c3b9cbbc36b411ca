"""A site of the repair console on real stores, with real lanes and a real gateway."""

from __future__ import annotations

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
from tests.unit.gateway.repairs.broken_sessions import Site
from tests.unit.gateway.repairs.test_broken_sessions import BY


@pytest.fixture
async def site(database_url: str, redis_url: str) -> AsyncIterator[tuple[Site, dict[str, dict[str, str]]]]:
    """Yield the site, used by an operator, and the headers of others."""
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
