"""Wake-ups and live events on a real Redis (RT-1, RT-15)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.commands.core import AsyncScript

from orchestrator.adapters.redis import client
from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.events import CHANNEL, RedisEvents
from orchestrator.adapters.redis.wakeup import (
    AWAKE,
    PLACES,
    READY,
    WAKE_AT_LEAST_EVERY_MS,
    WAKE_AT_MOST_EVERY_MS,
    WOKEN,
    RedisWakeup,
)
from orchestrator.errors import Unavailable
from orchestrator.turns.event import LOOK, Event
from orchestrator.types import SessionId, TenantId, TurnId

NOBODY = "redis://127.0.0.1:1/0"
A, B, C = SessionId("a"), SessionId("b"), SessionId("c")


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with connect(redis_url) as client:
        yield client


class Sent:
    """A receiver of wake-up messages."""

    def __init__(self) -> None:
        self.sessions: list[str] = []

    async def __call__(self, session_id: SessionId) -> None:
        self.sessions.append(session_id)


async def test_a_burst_sends_one_message(redis: Redis) -> None:
    sent = Sent()
    door = RedisWakeup(redis, sent)

    began = time.monotonic()
    await asyncio.gather(*(door.offer(SessionId(f"burst-{n}")) for n in range(50)))
    took_ms = (time.monotonic() - began) * 1000

    assert 1 <= len(sent.sessions) <= 1 + took_ms / WAKE_AT_MOST_EVERY_MS
    assert await redis.zcard(READY) == 50


async def test_no_message_is_sent_while_a_runner_takes(redis: Redis) -> None:
    sent = Sent()
    door, runner = RedisWakeup(redis, sent), RedisWakeup(redis, sent)

    waiting = asyncio.create_task(runner.take(limit=16, timeout_s=1))
    while not await redis.zcard(AWAKE):
        await asyncio.sleep(0.01)
    await door.offer(A)

    assert await waiting == [A]
    assert sent.sessions == []


async def test_a_backlog_wakes_another_runner(redis: Redis) -> None:
    sent = Sent()
    door, runner = RedisWakeup(redis, sent), RedisWakeup(redis, sent)
    await runner.take(limit=1, timeout_s=0.01)

    await door.offer(A, B)

    assert sent.sessions == [A]


async def test_a_backlog_of_awake_runners_sends_ever_fewer_messages(redis: Redis) -> None:
    """Runners drop them, and a message costs more than a small turn."""
    sent = Sent()
    door, runner = RedisWakeup(redis, sent), RedisWakeup(redis, sent)
    await runner.take(limit=1, timeout_s=0.01)

    async def offer_after(passed_ms: int) -> int:
        await redis.hincrby(WOKEN, "at", -passed_ms)
        before = len(sent.sessions)
        await door.offer(A, B)
        return len(sent.sessions) - before

    await door.offer(A, B)
    assert [await offer_after(WAKE_AT_LEAST_EVERY_MS) for _ in range(5)] == [1] * 5
    assert await offer_after(WAKE_AT_LEAST_EVERY_MS // 4) == 0
    await redis.zadd(AWAKE, {"woken": 2**53})
    assert await offer_after(WAKE_AT_MOST_EVERY_MS) == 1, "one more came awake, so others may sleep"


async def test_offers_that_come_together_are_one_round_trip(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    trips: list[int] = []
    run = AsyncScript.__call__

    async def counted(self: AsyncScript, *arguments: Any, **named: Any) -> Any:
        trips.append(len(named["keys"]))
        return await run(self, *arguments, **named)

    door = RedisWakeup(redis, Sent())
    await door.offer(A)
    monkeypatch.setattr(AsyncScript, "__call__", counted)

    assert all(await asyncio.gather(*(door.offer(SessionId(f"gathered-{n}")) for n in range(50))))

    assert len(trips) == 1
    assert await redis.zcard(READY) == 51


async def test_offers_and_takes_go_on_where_their_connections_were_closed(redis: Redis) -> None:
    """Also after the server has lost the script."""
    door = RedisWakeup(redis, Sent())
    await door.offer(A)
    assert await door.take(limit=2, timeout_s=1) == [A]
    await redis.script_flush()
    await redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await asyncio.sleep(0.1)

    assert await door.offer(A, B)
    assert sorted(await door.take(limit=2, timeout_s=1)) == [A, B]


async def test_the_older_protocol_gives_the_same_sessions(redis_url: str) -> None:
    async with connect(f"{redis_url}{'&' if '?' in redis_url else '?'}protocol=2") as older:
        door = RedisWakeup(older, Sent())
        await door.offer(A, B, C)

        assert sorted(await door.take(limit=3, timeout_s=1)) == [A, B, C]


async def test_an_offer_is_taken_once_and_the_oldest_first(redis: Redis) -> None:
    door = RedisWakeup(redis, Sent())
    for session in (B, A, B, C):
        await door.offer(session)
        await asyncio.sleep(0.002)  # the order has a resolution of milliseconds

    assert await door.take(limit=2, timeout_s=1) == [B, A]
    assert await door.take(limit=2, timeout_s=1) == [C]
    assert await door.take(limit=2, timeout_s=0.01) == []


async def test_tenants_take_turns_and_each_keeps_its_order(redis: Redis) -> None:
    """RT-30: sessions of a tenant with few turns overtake those of a tenant with many, without starvation."""
    door = RedisWakeup(redis, Sent())
    loud, few = TenantId("loud"), TenantId("few")
    many = [SessionId(f"a{n:03}") for n in range(100)]
    await door.offer(*many, tenant_id=loud)
    assert await door.take(limit=10, timeout_s=1) == many[:10]

    await door.offer(C, B, A, tenant_id=few)
    await door.offer(*many[:10], tenant_id=loud)

    taken = await door.take(limit=8, timeout_s=1)
    assert [session for session in taken if session in {A, B, C}] == [C, B, A]
    assert [session for session in taken if session not in {A, B, C}] == many[10:15]
    assert await door.take(limit=100, timeout_s=1) == [*many[15:], *many[:10]]
    await door.offer(A, tenant_id=loud)
    assert await redis.hgetall(PLACES) == {b"loud": b"1"}, "kept while somebody waits"


async def test_a_runner_does_not_retire_from_waiting_work(redis: Redis) -> None:
    sent = Sent()
    runner = RedisWakeup(redis, sent)
    await runner.take(limit=1, timeout_s=0.01)
    await runner.offer(A)

    assert not await runner.retire()
    assert await runner.take(limit=1, timeout_s=1) == [A]
    assert await runner.retire()
    await redis.delete(WOKEN)
    await runner.offer(B)

    assert sent.sessions == [B]


async def test_a_silent_runner_is_not_counted_on(redis: Redis) -> None:
    """A killed runner counts as awake only until its entry expires."""
    sent = Sent()
    await redis.zadd(AWAKE, {"killed": 1})

    await RedisWakeup(redis, sent).offer(A)

    assert sent.sessions == [A]


async def test_without_redis_an_offer_is_refused_and_a_take_says_why() -> None:
    async with connect(NOBODY) as nowhere:
        wakeup = RedisWakeup(nowhere, Sent())

        assert await wakeup.offer(A) is False
        assert wakeup.failures == 1
        with pytest.raises(Unavailable):
            await wakeup.take(limit=1, timeout_s=1)


async def test_a_broker_that_is_down_does_not_fail_an_offer(redis: Redis) -> None:
    async def fail(session_id: SessionId) -> None:
        raise Unavailable("no broker")

    assert await RedisWakeup(redis, fail).offer(A) is False
    assert await redis.zcard(READY) == 1


def _answer(session: SessionId, number: int) -> Event:
    return Event(session, "answer", TurnId(f"turn_{number}"), {"reply": "ü"}, number)


async def test_many_sessions_are_listened_to_over_one_connection(redis: Redis) -> None:
    """Every event arrives in order at the listeners of its session, and at no others."""
    live = RedisEvents(redis)

    async def converse(session: SessionId) -> list[Event]:
        async with live.listen(session) as events:
            heard = []
            for number in range(1, 21):
                await live.publish(session, (_answer(session, number),))
                heard.append(await anext(events))
            return heard

    sessions = [SessionId(f"s{n}") for n in range(16)]
    heard = await asyncio.gather(*map(converse, sessions))
    listening = [one for one in await redis.client_list() if int(one["sub"]) > 0]
    await live.close()

    assert heard == [[_answer(session, number) for number in range(1, 21)] for session in sessions]
    assert len(listening) <= 1


async def test_who_leaves_before_it_is_heard_leaves_nothing_behind(redis: Redis) -> None:
    """Otherwise the process would receive and collect that session's events forever."""
    live = RedisEvents(redis)
    async with live.listen(A):
        await redis.execute_command("CLIENT", "PAUSE", 500, "ALL")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1), live.listen(B):
                pytest.fail("Redis cannot have answered yet")
        async with live.listen(C):  # its subscription is written after earlier writes for B
            assert await redis.pubsub_numsub(*(f"{CHANNEL}{one}" for one in (A, B, C))) == [
                (f"{CHANNEL}{A}".encode(), 1),
                (f"{CHANNEL}{B}".encode(), 0),
                (f"{CHANNEL}{C}".encode(), 1),
            ]
    await live.close()


async def test_listening_survives_a_lost_connection(redis: Redis, redis_url: str) -> None:
    live = RedisEvents(redis)
    async with live.listen(A) as events, connect(redis_url) as other:
        await other.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        assert (await anext(events)).type == LOOK, "something may have been missed"
        await live.publish(A, (_answer(A, 1),))
        assert await anext(events) == _answer(A, 1)
    await live.close()


async def test_a_session_joins_after_a_quiet_time(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's own health check must not read concurrently with the reader."""
    monkeypatch.setattr(client, "HEALTH_CHECK_EVERY_S", 0.2)
    redis = connect(redis_url)
    live = RedisEvents(redis)
    async with live.listen(A):
        await asyncio.sleep(0.5)  # longer than the health check's interval, which is the tested case
        async with live.listen(B) as events:
            await live.publish(B, (_answer(B, 1),))
            async with asyncio.timeout(5):
                assert await anext(events) == _answer(B, 1)
    await live.close()
    await redis.aclose()


async def test_publishing_goes_on_where_its_connection_was_closed(redis: Redis, redis_url: str) -> None:
    """The stored connection is checked before use, so nothing is lost."""
    live = RedisEvents(redis)
    async with live.listen(A) as events, connect(redis_url) as other:
        await live.publish(A, (_answer(A, 1),))
        await other.execute_command("CLIENT", "KILL", "TYPE", "normal")
        await asyncio.sleep(0.1)
        await live.publish(A, (_answer(A, 2),))
        assert [await anext(events), await anext(events)] == [_answer(A, 1), _answer(A, 2)]
    await live.close()
    assert live.failures == 0


async def test_publishing_without_redis_is_counted_and_goes_on() -> None:
    async with connect(NOBODY) as nowhere:
        live = RedisEvents(nowhere)
        await live.publish(A, (_answer(A, 1),))

    assert live.failures == 1
