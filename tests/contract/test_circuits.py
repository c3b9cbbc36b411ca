"""CO-2: a process's circuit breakers are visible to other processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from orchestrator.adapters.redis.circuits import FORGOTTEN_AFTER_S, RedisCircuits
from orchestrator.errors import Unavailable
from orchestrator.telemetry import Signal, SignalType


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(redis_url) as client:
        yield client


def changed(state: str, model: str = "small") -> Signal:
    payload = {"endpoint": "http://here/v1/", "model": model, "state": state, "failures": 5}
    return Signal(source="prompt_engineer", type=SignalType.BREAKER, payload=payload)


async def test_what_is_open_anywhere_is_seen_everywhere(redis: Redis):
    one, other = RedisCircuits(redis), RedisCircuits(redis)
    one.note(changed("open"))
    other.note(changed("half_open", "large"))
    await one.settled()
    await other.settled()

    assert [(note.model, note.state) for note in await one.read()] == [
        ("large", "half_open"),
        ("small", "open"),
    ]


async def test_what_has_closed_is_gone_and_only_for_its_process(redis: Redis):
    one, other = RedisCircuits(redis), RedisCircuits(redis)
    for circuits, state in ((one, "open"), (other, "open"), (one, "closed")):
        circuits.note(changed(state))
        await circuits.settled()

    assert [note.state for note in await one.read()] == ["open"]


async def test_the_last_change_stays_however_fast_they_follow(redis: Redis):
    circuits = RedisCircuits(redis)
    for model in map(str, range(20)):
        for state in ("open", "half_open", "closed"):
            circuits.note(changed(state, model))
            await asyncio.sleep(0)
    await circuits.settled()

    assert await circuits.read() == []


async def test_notes_of_the_dead_are_forgotten(redis: Redis):
    dead = RedisCircuits(redis, clock=lambda: 1000.0)
    dead.note(changed("open"))
    await dead.settled()

    assert len(await RedisCircuits(redis, clock=lambda: 1001.0).read()) == 1
    assert await RedisCircuits(redis, clock=lambda: 1001.0 + FORGOTTEN_AFTER_S).read() == []


async def test_other_signals_are_none_of_its_business(redis: Redis):
    circuits = RedisCircuits(redis)
    circuits.note(Signal(source="nlu", type=SignalType.PREDICTION))
    await circuits.settled()

    assert await circuits.read() == []


async def test_without_redis_nobody_is_kept_from_working():
    async with Redis(host="127.0.0.1", port=1) as nowhere:
        circuits = RedisCircuits(nowhere)
        circuits.note(changed("open"))
        await circuits.settled()
        with pytest.raises(Unavailable):
            await circuits.read()
