"""Quickly restore a dead consumer's unacknowledged messages on a Redis broker (RT-27).

Celery would wait for the visibility timeout, and its consumers share one record of unacknowledged messages.
Here, each consumer has a separate record and a frequent heartbeat. When a consumer falls silent, the others
restore its messages. If that consumer was only slow, receivers detect duplicates by message ID. RabbitMQ
restores messages natively.
"""

import os
import socket
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from orchestrator.adapters.redis.client import read_script, translated
from orchestrator.ports.tasks import SUBMISSIONS
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject, new_id

CONSUMERS: Final = "parley:consumers"
BOOK: Final = "unacked:"
KEEP_EVERY_S: Final = 0.3
SILENT_FOR_MS: Final = 1200
SELDOM_AFTER_MS: Final = 10_000
"""Silence after which a dead consumer is only examined once in this time, in milliseconds."""
FORGOTTEN_AFTER_MS: Final = 600_000
WITH_PRIORITY: Final = tuple(f"{SUBMISSIONS}\x06\x16{step}" for step in (3, 6, 9))
"""Lists of prioritized submissions. Only the list without a priority is consumed atomically."""

_log = get_logger(__name__)


def name_consumer() -> str:
    return new_id(f"{socket.gethostname()}-{os.getpid()}")


def book_options(consumer: str) -> JsonObject:
    """Return Celery's transport options that give a consumer a separate record of unacknowledged messages."""
    return {
        "unacked_key": BOOK + consumer,
        "unacked_index_key": f"{BOOK}{consumer}:index",
        "unacked_mutex_key": f"{BOOK}{consumer}:mutex",
    }


def taken_by(book: str) -> str:
    """Return the key of the list that holds a delivered submission until the consumer has recorded it.

    `book`: key of the consumer's record.
    """
    return f"{book}:taken"


class UnacknowledgedMessages:
    """The unacknowledged messages of a Redis broker's consumers.

    Args:
        redis: client of the broker.
        consumer: this process's consumer name.
    """

    def __init__(self, redis: Redis, consumer: str) -> None:
        self._redis: Any = redis
        self._consumer = consumer
        self._keep = redis.register_script(read_script("keep_consumer"))

    async def keep(self) -> None:
        """Send a heartbeat, and restore the messages of dead consumers. Raises Unavailable."""
        with translated():
            silent = await self._keep(
                keys=[CONSUMERS, SUBMISSIONS, *WITH_PRIORITY],
                args=[self._consumer, SILENT_FOR_MS, FORGOTTEN_AFTER_MS, SELDOM_AFTER_MS],
            )
            for name in silent:
                await self._give_back(name.decode())

    async def _give_back(self, consumer: str) -> None:
        """Requeue a consumer's unacknowledged messages. Concurrent calls can duplicate a message."""
        book = BOOK + consumer
        while await self._redis.lmove(taken_by(book), SUBMISSIONS, "RIGHT", "RIGHT"):
            pass
        taken = await self._redis.hgetall(book)
        if not taken:
            return
        async with self._redis.pipeline(transaction=True) as pipeline:
            for tag, entry in taken.items():
                message, _, queue = orjson.loads(entry)
                pipeline.rpush(queue, orjson.dumps(message))
                pipeline.hdel(book, tag)
                pipeline.zrem(f"{book}:index", tag)
            await pipeline.execute()
        _log.warning("A dead consumer's messages were requeued.", messages=len(taken))
