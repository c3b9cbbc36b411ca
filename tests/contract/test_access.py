"""Keys, tickets and request limits, in memory and on real stores (RT-22, RT-23)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from orchestrator.adapters.postgres.keys import PostgresKeys
from orchestrator.adapters.postgres.migrate import migrate
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.shared import REQUESTS, RedisRequestLimits, RedisTickets
from orchestrator.errors import NotFound, Unavailable
from orchestrator.ports.access import Limit, RequestLimits, Tickets
from orchestrator.turns.access import Caller, Scope
from orchestrator.types import SessionId, TenantId, UserId, new_id
from parley.testing.store import ManualClock
from tests.contract.in_memory.access import MemoryKeys, MemoryRequestLimits, MemoryTickets

USER = frozenset({Scope.USER})
OPERATOR = frozenset({Scope.OPERATOR})


@dataclass
class Ports:
    """The ports of one store.

    Args:
        age: makes stored counts and values older by seconds.
        now: the store's time.
    """

    keys: PostgresKeys
    tickets: Tickets
    limits: RequestLimits
    age: Callable[[float], Awaitable[None]]
    now: Callable[[], datetime]


@pytest.fixture(params=["memory", "stores"])
async def ports(request: pytest.FixtureRequest) -> AsyncIterator[Ports]:
    if request.param == "memory":
        clock = ManualClock()

        async def advance(seconds: float) -> None:
            clock.advance(seconds)

        yield Ports(MemoryKeys(clock), MemoryTickets(clock), MemoryRequestLimits(clock), advance, clock)
        return
    url = request.getfixturevalue("database_url")
    migrate(url)
    async with Database(url) as database, Redis.from_url(request.getfixturevalue("redis_url")) as redis:

        async def move_back(seconds: float) -> None:
            for key in await redis.keys(REQUESTS + "*"):
                await redis.set(key, int(await redis.get(key)) - int(seconds * 1e6), keepttl=True)
            for key in await redis.keys("parley:ticket:*"):
                left_ms = max(1, await redis.pttl(key) - int(seconds * 1000))
                await redis.pexpire(key, left_ms)
                while left_ms == 1 and await redis.exists(key):
                    pass

        keys, limits = PostgresKeys(database), RedisRequestLimits(redis)
        yield Ports(keys, RedisTickets(redis), limits, move_back, lambda: datetime.now(UTC))


async def test_a_key_is_found_by_its_text_alone(ports: Ports, tenant: TenantId) -> None:
    key, text = await ports.keys.create(tenant, "shop", USER, user_id=UserId("ann"))
    _, other = await ports.keys.create(tenant, "till", OPERATOR)

    found = await ports.keys.find(text)

    assert found is not None
    assert (found.key_id, found.tenant_id, found.name) == (key.key_id, tenant, "shop")
    assert (found.scopes, found.user_id) == (USER, "ann")
    mixed = f"parley_{key.key_id}_{other.split('_', 2)[2]}"
    for wrong in (mixed, text[:-1], text + "x", key.key_id, "", "parley", "parley_", "é" * 50):
        assert await ports.keys.find(wrong) is None


async def test_keys_are_listed_without_their_text(ports: Ports, tenant: TenantId) -> None:
    _, first = await ports.keys.create(tenant, "first", USER)
    _, second = await ports.keys.create(tenant, "second", OPERATOR)

    listed = await ports.keys.list(tenant)

    assert [key.name for key in listed] == ["second", "first"]
    assert not any(text.split("_", 2)[2] in repr(listed) for text in (first, second))
    assert {key.key_id for key in listed} <= {key.key_id for key in await ports.keys.list()}


async def test_a_revoked_key_is_found_no_more(ports: Ports, tenant: TenantId) -> None:
    key, text = await ports.keys.create(tenant, "old", USER)
    assert await ports.keys.is_valid(key.key_id)
    first = await ports.keys.revoke(key.key_id)
    assert await ports.keys.find(text) is None
    assert not await ports.keys.is_valid(key.key_id)
    assert not await ports.keys.is_valid("none")
    assert first.revoked_at is not None
    assert (await ports.keys.revoke(key.key_id)).revoked_at == first.revoked_at
    with pytest.raises(NotFound):
        await ports.keys.revoke("none")


async def test_a_key_ends_when_its_time_is_over(ports: Ports, tenant: TenantId) -> None:
    now = ports.now()
    _, over = await ports.keys.create(tenant, "over", USER, expires_at=now - timedelta(seconds=1))
    _, good = await ports.keys.create(tenant, "good", USER, expires_at=now + timedelta(hours=1))
    assert await ports.keys.find(over) is None
    assert await ports.keys.find(good) is not None
    valid = [await ports.keys.is_valid(text.split("_")[1]) for text in (over, good)]
    assert valid == [False, True]


async def test_a_ticket_gives_its_caller_back_until_it_is_too_old(ports: Ports, tenant: TenantId) -> None:
    caller = Caller(tenant, USER, "shop", UserId("ann"), "token:ann", expires_at=2e9)
    ticket = await ports.tickets.issue(caller, lives_s=60)
    assert await ports.tickets.redeem(ticket) == caller
    assert await ports.tickets.redeem(ticket + "x") is None
    await ports.age(61)
    assert await ports.tickets.redeem(ticket) is None


async def test_a_ticket_that_is_kept_for_a_stream_opens_that_alone(ports: Ports, tenant: TenantId) -> None:
    caller, stream, other = Caller(tenant, USER, "shop"), SessionId("one"), SessionId("other")
    ticket = await ports.tickets.issue(caller, lives_s=60)
    ends = replace(caller, expires_at=2e9)
    await ports.tickets.keep(ticket, stream, ends, lives_s=600)

    assert await ports.tickets.redeem(ticket, stream=stream) == caller
    await ports.age(61)
    assert await ports.tickets.redeem(ticket, stream=stream) == ends
    assert await ports.tickets.redeem(ticket, stream=other) is None
    assert await ports.tickets.redeem(ticket) is None
    await ports.tickets.keep(ticket, stream, ends, lives_s=600)
    await ports.age(599)
    assert await ports.tickets.redeem(ticket, stream=stream) == ends
    await ports.age(2)
    assert await ports.tickets.redeem(ticket, stream=stream) is None


async def test_a_burst_and_then_the_rate(ports: Ports, tenant: TenantId) -> None:
    limits = [Limit("caller", per_minute=60, burst=3)]
    waits = [await ports.limits.take(tenant, limits) for _ in range(4)]
    assert waits[:3] == [0, 0, 0]
    assert 0.5 < waits[3] <= 1

    await ports.age(1)
    assert await ports.limits.take(tenant, limits) == 0
    assert await ports.limits.take(tenant, limits) > 0


async def test_a_refused_request_is_counted_nowhere(ports: Ports, tenant: TenantId) -> None:
    narrow, wide = Limit("session", per_minute=1, burst=1), Limit("caller", per_minute=1, burst=2)
    assert await ports.limits.take(tenant, [narrow, wide]) == 0
    assert await ports.limits.take(tenant, [narrow, wide]) > 30
    assert await ports.limits.take(tenant, [wide]) == 0


async def test_tenants_are_counted_apart(ports: Ports, tenant: TenantId) -> None:
    limits = [Limit("tenant", per_minute=1, burst=1)]
    assert await ports.limits.take(tenant, limits) == 0
    assert await ports.limits.take(TenantId(new_id("tenant")), limits) == 0
    assert await ports.limits.take(tenant, limits) > 0


async def test_without_redis_it_is_said_so() -> None:
    redis = connect("redis://127.0.0.1:1/0")
    with pytest.raises(Unavailable):
        await RedisRequestLimits(redis).take(TenantId("t"), [Limit("caller", 1, 1)])
    with pytest.raises(Unavailable):
        await RedisTickets(redis).redeem("ticket")
    await redis.aclose()
