"""PX-8: rate limits and caches of tools, in this process and in Redis."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import pytest
from redis.asyncio import Redis

from orchestrator.adapters.redis.shared import CALLS, RedisRateLimits, RedisToolCache
from orchestrator.errors import Unavailable
from orchestrator.ports.tools import RateLimits, ToolCache
from orchestrator.tools.in_process import MINUTE_S, InProcessCache, InProcessRateLimits
from parley.testing.store import ManualClock


@dataclass
class Ports:
    """The ports of one store. `age`: makes stored counts and values older by seconds."""

    limits: RateLimits
    cache: ToolCache
    age: Callable[[float], Awaitable[None]]


@pytest.fixture(params=["in_process", "redis"])
async def ports(request: pytest.FixtureRequest) -> AsyncGenerator[Ports, None]:
    if request.param == "in_process":
        clock = ManualClock()

        def seconds_now() -> float:
            return clock().timestamp()

        async def advance(seconds: float) -> None:
            clock.advance(seconds)

        yield Ports(InProcessRateLimits(seconds_now), InProcessCache(seconds_now), advance)
        return
    async with Redis.from_url(request.getfixturevalue("redis_url")) as redis:

        async def move_back(seconds: float) -> None:
            for key in await redis.keys(CALLS + "*"):
                for member, at in await redis.zrange(key, 0, -1, withscores=True):
                    await redis.zadd(key, {member: at - seconds * 1_000_000})
            for key in await redis.keys("parley:answers:*"):
                await redis.pexpire(key, max(0, await redis.pttl(key) - int(seconds * 1000)))

        yield Ports(RedisRateLimits(redis), RedisToolCache(redis), move_back)


async def test_calls_are_counted_up_to_the_limit(ports: Ports):
    waits = [await ports.limits.take("weather", per_minute=3) for _ in range(4)]

    assert waits[:3] == [0, 0, 0]
    assert MINUTE_S - 5 < waits[3] <= MINUTE_S


async def test_what_was_refused_is_not_counted(ports: Ports):
    await ports.limits.take("weather", per_minute=1)
    await ports.age(40)
    refused = await ports.limits.take("weather", per_minute=1)
    assert 0 < refused <= 20

    await ports.age(21)

    assert await ports.limits.take("weather", per_minute=1) == 0


async def test_the_minute_slides(ports: Ports):
    await ports.limits.take("weather", per_minute=2)
    await ports.age(30)
    await ports.limits.take("weather", per_minute=2)
    await ports.age(31)

    assert await ports.limits.take("weather", per_minute=2) == 0
    assert 0 < await ports.limits.take("weather", per_minute=2) <= 30


async def test_a_lower_limit_looks_at_the_latest_calls(ports: Ports):
    for _ in range(3):
        await ports.limits.take("weather", per_minute=3)
    await ports.age(10)

    wait = await ports.limits.take("weather", per_minute=1)

    assert 45 < wait <= 50


async def test_tools_are_counted_apart(ports: Ports):
    await ports.limits.take("weather", per_minute=1)

    assert await ports.limits.take("news", per_minute=1) == 0


async def test_side_by_side_no_more_than_the_limit_gets_through(ports: Ports):
    waits = await asyncio.gather(*(ports.limits.take("weather", per_minute=7) for _ in range(40)))

    assert sum(wait == 0 for wait in waits) == 7


async def test_the_cache_gives_what_was_put_and_nothing_else(ports: Ports):
    await ports.cache.put("a", b"1", ttl_ms=60_000)
    await ports.cache.put("a", b"2", ttl_ms=60_000)

    assert await ports.cache.get("a") == b"2"
    assert await ports.cache.get("b") is None


async def test_the_cache_forgets_after_its_time(ports: Ports):
    await ports.cache.put("a", b"1", ttl_ms=60_000)
    await ports.age(61)

    assert await ports.cache.get("a") is None


async def test_redis_keeps_no_call_beyond_the_window(redis_url: str):
    async with Redis.from_url(redis_url) as redis:
        await RedisRateLimits(redis).take("weather", per_minute=5)

        assert 0 < await redis.pttl(CALLS + "weather") <= 60_000


async def test_a_redis_that_is_away_is_named():
    async with Redis.from_url("redis://127.0.0.1:1/0", socket_connect_timeout=1) as redis:
        with pytest.raises(Unavailable, match="Redis"):
            await RedisRateLimits(redis).take("weather", per_minute=1)
        with pytest.raises(Unavailable, match="Redis"):
            await RedisToolCache(redis).get("a")
        with pytest.raises(Unavailable, match="Redis"):
            await RedisToolCache(redis).put("a", b"", ttl_ms=1)


async def test_one_process_keeps_a_bounded_number_of_answers():
    cache = InProcessCache()

    for number in range(1_200):
        await cache.put(str(number), b"", ttl_ms=60_000)

    assert await cache.get("0") is None
    assert await cache.get("1199") == b""
