"""The Redis client: what its commands owe to the tasks that wait for them."""

from __future__ import annotations

import asyncio

from orchestrator.adapters.redis.client import connect

TIMES = 300


async def test_a_cancellation_that_comes_while_a_command_is_sent_is_not_forgotten(redis_url: str) -> None:
    """A worker's shutdown cancels each task once: one that forgets it keeps the worker from ending."""
    async with connect(redis_url, max_connections=1) as redis:
        for turns_of_the_loop in range(TIMES):
            task = asyncio.create_task(_repeat(redis))
            for _ in range(2 + turns_of_the_loop % 30):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task}, timeout=1)
            assert task.cancelled(), turns_of_the_loop
        assert await redis.ping()


async def _repeat(redis) -> None:
    for _ in range(100):
        await redis.ping()
    await asyncio.sleep(10)
