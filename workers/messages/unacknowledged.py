"""Give back at once what a consumer that died had taken from a Redis broker and not acknowledged (RT-27).

Celery would do so after the visibility time-out, and keeps one book for all consumers. Here each has a book of its own,
and says several times a second that it is alive; when one falls silent, the others put its messages back. A consumer
that was only slow finds some of them done twice, which every receiver of ours recognises by the message's identifier.
RabbitMQ does all this by itself.
"""

from __future__ import annotations

import os
import socket
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from orchestrator.adapters.redis.client import read_script, translated
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject, new_id

CONSUMERS: Final = "parley:consumers"
BOOK: Final = "unacked:"
KEEP_EVERY_S: Final = 0.3
SILENT_FOR_MS: Final = 1200

_log = get_logger(__name__)


def name_consumer() -> str:
    """A name that no other process has, nor had."""
    return new_id(f"{socket.gethostname()}-{os.getpid()}")


def book_options(consumer: str) -> JsonObject:
    """Celery's options for a consumer with a book of its own."""
    return {
        "unacked_key": BOOK + consumer,
        "unacked_index_key": f"{BOOK}{consumer}:index",
        "unacked_mutex_key": f"{BOOK}{consumer}:mutex",
    }


class UnacknowledgedMessages:
    """Args: `redis`: the broker's server; `consumer`: this process."""

    def __init__(self, redis: Redis, consumer: str) -> None:
        self._redis: Any = redis
        self._consumer = consumer
        self._keep = redis.register_script(read_script("keep_consumer"))

    async def keep(self) -> None:
        """Be known as alive, and put back what those had who are not. Raises Unavailable."""
        with translated():
            silent = await self._keep(keys=[CONSUMERS], args=[self._consumer, SILENT_FOR_MS])
            for name in silent:
                await self._give_back(name.decode())

    async def _give_back(self, consumer: str) -> None:
        """Two may do so at once: then a message comes twice."""
        book = BOOK + consumer
        taken = await self._redis.hgetall(book)
        async with self._redis.pipeline(transaction=True) as pipeline:
            for tag, entry in taken.items():
                message, _, queue = orjson.loads(entry)
                pipeline.rpush(queue, orjson.dumps(message))
                pipeline.hdel(book, tag)
                pipeline.zrem(f"{book}:index", tag)
            pipeline.zrem(CONSUMERS, consumer)
            await pipeline.execute()
        if taken:
            _log.warning("Messages of a consumer that is gone were put back.", messages=len(taken))
