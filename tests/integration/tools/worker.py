"""A process that calls a tool repeatedly over shared stores and prints the result of each call.

Arguments: URL of Redis, URL of the tool, number of calls, and further keys of the tool as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys

from redis.asyncio import Redis

from orchestrator.adapters.redis.shared import RedisRateLimits, RedisToolCache
from orchestrator.tools.middleware import ToolPorts
from orchestrator.tools.toolbox import ToolData
from tests.integration.tools.factories import Caller, http_tool


async def main(redis_url: str, url: str, calls: int, keys: str) -> list[bool]:
    async with Redis.from_url(redis_url) as redis:
        ports = ToolPorts(None, RedisRateLimits(redis), RedisToolCache(redis))
        async with Caller(http_tool(url, **json.loads(keys)), ports=ports) as caller:
            results = await asyncio.gather(*(caller.call() for _ in range(calls)))
    return [isinstance(result, ToolData) for result in results]


if __name__ == "__main__":
    redis_url, url, calls, keys = sys.argv[1:]
    print(json.dumps(asyncio.run(main(redis_url, url, int(calls), keys))))
