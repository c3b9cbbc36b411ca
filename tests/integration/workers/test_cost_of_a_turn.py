"""RT-20: what a turn costs is bounded by counts, which are the same on every machine."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from benchmarks.environment import open_lanes
from benchmarks.profile import CALLS, WAL_BYTES, Calls, Talk
from benchmarks.turns import BOOKING
from orchestrator.adapters.postgres.migrate import migrate
from parley.embedded import Stores

BOUNDS = {
    CALLS: 3_250,
    "JSON decoded": 3,
    "JSON encoded": 33,
    "statements": 5.5,
    "Redis commands": 1.5,
    "metric observations": 15,
    WAL_BYTES: 14_000,
}
"""At most, for one turn of the booking talk: claim, understanding, tools and commit, without its submission."""


@pytest.fixture
async def talk(database_url: str, redis_url: str) -> AsyncIterator[Talk]:
    migrate(database_url)
    async with open_lanes(Stores(database_url, redis_url)) as (ports, lanes):
        yield Talk(ports, lanes, sessions=2)


async def test_a_turn_costs_no_more_than_these(talk: Talk) -> None:
    await talk.take(2 * len(BOOKING))
    calls = Calls()
    await talk.take(len(BOOKING), calls)
    counted = calls.of_one(talk.sessions * len(BOOKING))
    counted[WAL_BYTES] = await talk.log_bytes(2 * len(BOOKING))
    assert all(0 < counted[name] <= bound for name, bound in BOUNDS.items()), counted
