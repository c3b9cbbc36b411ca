"""Rejected messages, stored in Redis until a week after the last rejection, so that operators can replay them (RT-30).

Operators see a message's task, queue, session and rejection reason, but never its contents.
"""

import base64
import time
from typing import Any, Final

import orjson

from orchestrator.types import JsonObject, new_id

FACTS: Final = "submissions:dead"
MESSAGES: Final = "submissions:dead:messages"
MOST_KEPT: Final = 200
LARGEST_BYTES: Final = 128 * 1024
KEPT_FOR_S: Final = 7 * 86_400
OF_THE_BROKER: Final = ("x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count")
"""Prefixes of the headers that RabbitMQ uses to record past deliveries. Stored messages omit them."""


class DeadLetters:
    """A Redis-backed store of rejected messages. Methods raise redis-py's errors.

    Args:
        redis: a blocking client.
    """

    def __init__(self, redis: Any) -> None:
        self._redis = redis

    def keep(self, facts: JsonObject, message: Any) -> None:
        """Store a kombu message with its metadata (`facts`), and evict the oldest messages beyond `MOST_KEPT`.

        If the body is larger than `LARGEST_BYTES`, store only the metadata.
        """
        body: bytes = message.body.encode() if isinstance(message.body, str) else bytes(message.body or b"")
        letter_id = new_id("dead")
        told = {"id": letter_id, "at": time.time(), **facts, "bytes": len(body)}
        properties: JsonObject = message.properties or {}
        delivery: JsonObject = message.delivery_info or {}
        headers: JsonObject = message.headers or {}
        kept: JsonObject = {
            "queue": facts.get("queue") or delivery.get("routing_key"),
            "headers": {name: value for name, value in headers.items() if not name.startswith(OF_THE_BROKER)},
            "content_type": message.content_type,
            "content_encoding": message.content_encoding,
            "correlation_id": properties.get("correlation_id"),
            "reply_to": properties.get("reply_to"),
            "body": base64.b64encode(body).decode(),
        }
        pipeline = self._redis.pipeline()
        pipeline.lpush(FACTS, orjson.dumps(told))
        if len(body) <= LARGEST_BYTES:
            pipeline.hset(MESSAGES, letter_id, orjson.dumps(kept))
        pipeline.lrange(FACTS, MOST_KEPT, -1)
        pipeline.ltrim(FACTS, 0, MOST_KEPT - 1)
        pipeline.expire(FACTS, KEPT_FOR_S)
        pipeline.expire(MESSAGES, KEPT_FOR_S)
        dropped = [orjson.loads(entry)["id"] for entry in pipeline.execute()[-4]]
        if dropped:
            self._redis.hdel(MESSAGES, *dropped)

    def list(self) -> list[JsonObject]:
        """Return the stored messages' metadata, newest first."""
        return [orjson.loads(entry) for entry in self._redis.lrange(FACTS, 0, -1)]

    def message(self, letter_id: str) -> JsonObject | None:
        """Return a stored message, or None if it doesn't exist or was too large to store."""
        kept = self._redis.hget(MESSAGES, letter_id)
        return None if kept is None else orjson.loads(kept)

    def drop(self, letter_id: str) -> bool:
        for entry in self._redis.lrange(FACTS, 0, -1):
            if orjson.loads(entry)["id"] == letter_id:
                pipeline = self._redis.pipeline()
                pipeline.lrem(FACTS, 1, entry)
                pipeline.hdel(MESSAGES, letter_id)
                pipeline.execute()
                return True
        return False
