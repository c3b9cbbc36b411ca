"""Cancellation and connection errors of the Redis client."""

from __future__ import annotations

import asyncio

import pytest
import uvloop
from redis.exceptions import ConnectionError as ConnectionLost

from orchestrator.adapters.redis.client import connect

TIMES = 300


async def test_a_cancellation_that_comes_while_a_command_is_sent_is_not_forgotten(redis_url: str) -> None:
    """A worker's shutdown cancels each task once. A lost cancellation would block the shutdown."""
    async with connect(redis_url, max_connections=1) as redis:
        for turns_of_the_loop in range(TIMES):
            task = asyncio.create_task(_repeat(redis))
            for _ in range(2 + turns_of_the_loop % 30):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task}, timeout=1)
            assert task.cancelled(), turns_of_the_loop
        assert await redis.ping()


async def _ping(connection) -> None:
    await connection.send_command("PING", check_health=False)
    await connection.read_response()


async def _repeat(redis) -> None:
    for _ in range(100):
        await redis.ping()
    await asyncio.sleep(10)


async def _is_lost(connection) -> None:
    connection._writer.transport.abort()


async def _is_dropped_by_its_reader(connection) -> None:
    # Runs when sending begins.
    connection.dropped = asyncio.ensure_future(connection.disconnect(nowait=True))


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("it", [_is_lost, _is_dropped_by_its_reader])
def test_a_connection_that_is_closed_is_lost_in_the_words_of_the_driver(it, run, redis_url: str) -> None:
    """Callers handle the driver's error for an unreachable Redis; other errors would count as internal."""

    async def send_on_a_closed_connection() -> bool:
        async with connect(redis_url, max_connections=1) as redis:
            connection = await redis.connection_pool.get_connection()
            await it(connection)
            with pytest.raises(ConnectionLost):
                await _ping(connection)
            await redis.connection_pool.release(connection)
            return await redis.ping()

    assert run(send_on_a_closed_connection())
