"""RT-35: sessions broken in every way are repaired with the console's calls alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.auth.authentication import Access
from orchestrator.ports.lane import Lane
from orchestrator.turns.access import Scope
from orchestrator.types import DEFAULT_TENANT, TenantId
from parley.testing.inbox import MemoryInbox
from parley.testing.lane import MemoryLane
from parley.testing.live import MemoryLiveEvents
from parley.testing.store import MemoryStore
from tests.contract.in_memory.access import MemoryKeys
from tests.unit.gateway.memory_dependencies import make_dependencies, serve
from tests.unit.gateway.repairs.broken_sessions import KINDS, Site, Ticket, break_one
from tests.unit.gateway.repairs.repairing import goes_on, judge, repair_one

SHORT, LONG = 30, 500
BY = "ann"


@asynccontextmanager
async def open_site() -> AsyncIterator[tuple[Site, dict[str, dict[str, str]]]]:
    """Open an in-memory gateway with authentication, used by an operator. Also yield other callers' headers."""
    store, live = MemoryStore(), MemoryLiveEvents()
    keys = MemoryKeys(store.clock)
    callers = (
        (BY, DEFAULT_TENANT, Scope.OPERATOR),
        ("user", DEFAULT_TENANT, Scope.USER),
        ("other", TenantId("other"), Scope.OPERATOR),
    )
    headers = {}
    for name, tenant, scope in callers:
        _, text = await keys.create(tenant, name, frozenset({scope}))
        headers[name] = {"Authorization": f"Bearer {text}"}
    inbox = MemoryInbox(store)

    async def make_lane(**options: Any) -> Lane:
        return MemoryLane(store, **options)

    dependencies = make_dependencies(store, live=live, inbox=inbox, access=Access(required=True, keys=keys))
    async with serve(dependencies, headers=headers[BY]) as (_, http):
        site = Site(inbox, make_lane, http, live)
        await site.open()
        yield site, headers


async def exceed(site: Site, ticket: Ticket, headers: dict[str, dict[str, str]]) -> list[str]:
    """Try every call without permission. Return the calls that were not rejected."""
    path, body = f"/v1/sessions/{ticket.session}/repairs", {"repairs": [{"kind": "take_over"}]}
    order = body | {"epoch": ticket.epoch, "why": "because"}
    found = []
    for name, status in (("user", 403), ("other", 404)):
        answers = (
            await site.http.get(path, headers=headers[name]),
            await site.http.post(f"{path}/preview", json=body, headers=headers[name]),
            await site.http.post(path, json=order, headers=headers[name]),
        )
        found += [
            f"{name} was given {answer.status_code}" for answer in answers if answer.status_code != status
        ]
    return found


async def repair_many(count: int, seed: int) -> tuple[list[str], Counter[str]]:
    """Break and repair `count` sessions. Return the faults, and the number of sessions by kind."""
    numbers, found, kinds = random.Random(seed), [], Counter[str]()
    async with open_site() as (site, headers):
        for number in range(count):
            ticket = await break_one(site, number, numbers)
            kinds[ticket.kind] += 1
            found += await exceed(site, ticket, headers)
            wrong = await repair_one(site, ticket)
            found += wrong or await judge(site, ticket, BY)
            found += wrong or await goes_on(site, ticket)
    return found, kinds


async def test_broken_sessions_are_repaired() -> None:
    found, kinds = await repair_many(SHORT, seed=1)

    assert found == []
    assert len(kinds) == len(KINDS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_many_broken_sessions_are_repaired() -> None:
    found, kinds = await repair_many(LONG, seed=2)

    assert found == []
    assert kinds.total() == LONG
