"""Messages that a dead consumer had taken from Redis are returned soon."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import orjson
import pytest
from kombu import Connection
from redis.asyncio import Redis

from orchestrator.adapters.redis.address import for_celery
from orchestrator.adapters.redis.client import connect
from workers.messages import unacknowledged
from workers.messages.unacknowledged import (
    CONSUMERS,
    SILENT_FOR_MS,
    UnacknowledgedMessages,
    book_options,
    name_consumer,
)

QUEUE = "unacknowledged-test"
MESSAGE = {"text": "book a flight"}


@pytest.fixture
def taker(redis_url: str) -> Iterator[tuple[str, Connection]]:
    """Run a consumer that takes a message like Celery, and never acknowledges it."""
    name = name_consumer()
    with Connection(for_celery(redis_url), transport_options=book_options(name)) as connection:
        yield name, connection


async def _read(redis: Redis) -> list[dict[str, str]]:
    messages = await redis.lrange(QUEUE, 0, -1)  # pyright: ignore[reportGeneralTypeIssues]
    with Connection("memory://") as plain:
        channel = plain.default_channel
        return [channel.message_to_python(orjson.loads(one)).payload for one in messages]


async def test_a_silent_consumers_messages_are_put_back(
    redis_url: str, taker: tuple[str, Connection]
) -> None:
    name, connection = taker
    redis = connect(redis_url)
    dead, survivor = UnacknowledgedMessages(redis, name), UnacknowledgedMessages(redis, name_consumer())
    await dead.keep()
    queue = connection.SimpleQueue(QUEUE)
    queue.put(MESSAGE)
    queue.get(timeout=5)

    await survivor.keep()
    assert await _read(redis) == []
    await asyncio.sleep(SILENT_FOR_MS / 1000 + 0.1)
    await survivor.keep()

    assert await _read(redis) == [MESSAGE]
    assert await redis.hlen(f"unacked:{name}") == 0  # pyright: ignore[reportGeneralTypeIssues]
    await survivor.keep()
    assert len(await _read(redis)) == 1
    await redis.delete(QUEUE)
    await redis.aclose()


async def test_a_long_silent_consumer_is_seldom_examined(
    redis_url: str, taker: tuple[str, Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, connection = taker
    redis = connect(redis_url)
    survivor = UnacknowledgedMessages(redis, name_consumer())
    monkeypatch.setattr(unacknowledged, "FORGOTTEN_AFTER_MS", 10**13)
    monkeypatch.setattr(unacknowledged, "SELDOM_AFTER_MS", 10**9)  # eleven days
    await redis.zadd(CONSUMERS, {name: 1})
    await survivor.keep()
    queue = connection.SimpleQueue(QUEUE)
    queue.put(MESSAGE)
    queue.get(timeout=5)

    await survivor.keep()
    assert await _read(redis) == []
    monkeypatch.setattr(unacknowledged, "SELDOM_AFTER_MS", 1)
    await asyncio.sleep(0.005)
    await survivor.keep()

    assert await _read(redis) == [MESSAGE]
    await redis.delete(QUEUE)
    await redis.aclose()
