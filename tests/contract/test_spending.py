"""CO-2: budget counters, in this process and in Redis."""

import asyncio
import time
from collections.abc import AsyncGenerator

import pytest
from redis.asyncio import Redis

from orchestrator.adapters.redis.shared import PREFIX, RedisSpending
from orchestrator.errors import Unavailable
from orchestrator.models.budget import InProcessSpending
from orchestrator.ports.spending import SpendingStore, Spent


@pytest.fixture(params=["in_process", "redis"])
async def store(request: pytest.FixtureRequest) -> AsyncGenerator[SpendingStore, None]:
    if request.param == "in_process":
        yield InProcessSpending(time.monotonic)
        return
    async with Redis.from_url(request.getfixturevalue("redis_url")) as redis:
        yield RedisSpending(redis)


async def test_a_counter_starts_at_nothing_and_adds_up(store: SpendingStore):
    assert await store.add("day:1", Spent(5, 70), keep_s=60) == Spent(5, 70)
    assert await store.add("day:1", Spent(1, 30), keep_s=60) == Spent(6, 100)


async def test_counters_are_apart(store: SpendingStore):
    await store.add("session:a", Spent(5, 5), keep_s=60)

    assert await store.add("session:b", Spent(), keep_s=60) == Spent()


async def test_what_was_reserved_is_given_back(store: SpendingStore):
    await store.add("day:1", Spent(5, 70), keep_s=60)

    assert await store.add("day:1", Spent(-2, -40), keep_s=60) == Spent(3, 30)


async def test_additions_side_by_side_are_all_counted_and_each_sees_its_own_total(store: SpendingStore):
    totals = await asyncio.gather(*(store.add("day:1", Spent(1, 2), keep_s=60) for _ in range(40)))

    assert sorted(total.tokens for total in totals) == list(range(1, 41))
    assert sorted(total.cost_micros for total in totals) == list(range(2, 82, 2))


async def test_redis_forgets_a_counter_after_its_time(redis_url: str):
    async with Redis.from_url(redis_url) as redis:
        await RedisSpending(redis).add("day:1", Spent(1, 1), keep_s=60)
        await RedisSpending(redis).add("day:1", Spent(1, 1), keep_s=90)

        assert 60 < await redis.ttl(PREFIX + "day:1") <= 90


async def test_a_redis_that_is_away_is_named():
    async with Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=1) as redis:
        with pytest.raises(Unavailable, match="Redis"):
            await RedisSpending(redis).add("day:1", Spent(1, 1), keep_s=60)
