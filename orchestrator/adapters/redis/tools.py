"""Rate limits and answers of tools that all workers share. What is done without Redis is the caller's business."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis

from orchestrator.adapters.redis.client import read_script, translated
from orchestrator.types import new_id

CALLS = "parley:calls:"
ANSWERS = "parley:answers:"
WINDOW_MS = 60_000


class RedisRateLimits:
    """Implements `ports.tools.RateLimits` with a sorted set per key, which expires.

    A count whose reply is lost may have been made: too few calls may go out, never too many.
    """

    def __init__(self, redis: Redis) -> None:
        self._take_call = redis.register_script(read_script("take_call"))

    async def take(self, key: str, *, per_minute: int) -> float:
        """See `RateLimits.take`."""
        with translated("Redis does not count calls; try again later."):
            wait_ms = await self._take_call(keys=[CALLS + key], args=[new_id("call"), per_minute, WINDOW_MS])
        return wait_ms / 1000


class RedisToolCache:
    """Implements `ports.tools.ToolCache` with keys that expire."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis

    async def get(self, key: str) -> bytes | None:
        """See `ToolCache.get`."""
        with translated("Redis does not give answers; try again later."):
            return await self._redis.get(ANSWERS + key)

    async def put(self, key: str, value: bytes, *, ttl_ms: int) -> None:
        """See `ToolCache.put`."""
        with translated("Redis does not keep answers; try again later."):
            await self._redis.set(ANSWERS + key, value, px=ttl_ms)
