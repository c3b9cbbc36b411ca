"""Who is offered a ready session: mostly the runner that had it last (RT-1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from orchestrator.adapters.redis import wakeup
from orchestrator.adapters.redis.client import connect
from orchestrator.adapters.redis.wakeup import AWAKE, WAITING_FOR_ONE, RedisWakeup
from orchestrator.types import SessionId


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with connect(redis_url) as client:
        yield client


async def _drop(session_id: SessionId) -> None:
    """In place of a message to a worker."""


async def _awake(redis: Redis, *, runners: int) -> list[RedisWakeup]:
    """Runners that have said that they are awake, and have nothing to do."""
    several = [RedisWakeup(redis, _drop) for _ in range(runners)]
    for runner in several:
        await runner.take(limit=1, timeout_s=0.01)
    return several


async def test_a_session_is_offered_to_the_same_runner_each_time(redis: Redis) -> None:
    """It has the state at hand. Over all sessions each gets its share."""
    runners = await _awake(redis, runners=3)
    door = RedisWakeup(redis, _drop)
    sessions = [SessionId(f"s{n}") for n in range(12)]

    async def find_takers() -> dict[SessionId, int]:
        takers: dict[SessionId, int] = {}
        for session in sessions:
            await door.offer(session)
            taken = await asyncio.gather(*(runner.take(limit=16, timeout_s=0.01) for runner in runners))
            takers |= {one: place for place, several in enumerate(taken) for one in several}
        return takers

    first, again = await find_takers(), await find_takers()

    assert sorted(first) == sorted(sessions)
    assert first == again
    assert min(map([*first.values()].count, range(3))) >= 2


async def test_what_a_runner_does_not_keep_up_with_is_for_all(redis: Redis) -> None:
    """And an idle one takes what the other was offered, too: nothing waits for one that is busy."""
    busy, idle = await _awake(redis, runners=2)
    door = RedisWakeup(redis, _drop)
    sessions = [SessionId(f"s{n}") for n in range(40)]
    await door.offer(*sessions)

    others = await idle.take(limit=40, timeout_s=1)
    left = [one for _ in range(WAITING_FOR_ONE) for one in await idle.take(limit=1, timeout_s=0.01)]
    stolen = [one for _ in range(WAITING_FOR_ONE) for one in await idle.take(limit=1, timeout_s=1, idle=True)]

    assert len(others) == 40 - WAITING_FOR_ONE
    assert left == []
    assert sorted(others + stolen) == sorted(sessions)
    assert await busy.take(limit=16, timeout_s=0.01) == []


@pytest.mark.parametrize("end", ["it is full", "it is killed"])
async def test_what_a_runner_leaves_behind_is_for_all(
    redis: Redis, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, other = await _awake(redis, runners=2)
    door = RedisWakeup(redis, _drop)
    sessions = [SessionId(f"s{n}") for n in range(40)]
    await door.offer(*sessions)
    before = await other.take(limit=40, timeout_s=1)
    if end == "it is full":
        assert await gone.retire(force=True)
    else:
        await redis.zadd(AWAKE, {gone._runner: 1})
        monkeypatch.setattr(wakeup, "ATTEND_EVERY_S", 0.0)

    left = await other.take(limit=16, timeout_s=1)

    assert len(left) == WAITING_FOR_ONE
    assert sorted(before + left) == sorted(sessions)


async def test_a_sweep_offers_to_all(redis: Redis) -> None:
    """Who was offered the session before may be dead, and still count as awake."""
    dead, other = await _awake(redis, runners=2)
    sessions = [SessionId(f"s{n}") for n in range(20)]
    for session in sessions:
        await RedisWakeup(redis, _drop).offer(session, nobody_came=True)

    assert sorted(await other.take(limit=40, timeout_s=1)) == sorted(sessions)
    assert await dead.take(limit=20, timeout_s=0.01) == []
