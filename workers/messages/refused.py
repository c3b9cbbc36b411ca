"""Counts, logs and keeps for a look what was dropped from a queue: where and why, never its contents (RT-22)."""

import time
from typing import Any

import orjson
from celery import current_app
from redis.exceptions import RedisError

from orchestrator.adapters.redis.worker_registry import MOST_REFUSED, REFUSED
from orchestrator.ports.tasks import QUEUES
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import MESSAGES_REFUSED

_log = get_logger(__name__)


def note_refused(event: str, queue: str | None, wrong: str, **about: Any) -> None:
    """Say that a message was dropped. `wrong`: which part of it; `about`: further facts, of names and numbers."""
    # The sender chose that name: one that is not ours would make a series of its own in every scrape.
    MESSAGES_REFUSED.labels(queue if queue in QUEUES else "unknown").inc()
    _log.error(event, queue=queue, wrong=wrong, **about)
    kept = orjson.dumps({"at": time.time(), "queue": queue, "wrong": wrong, **about})
    try:
        client: Any = current_app.backend.client  # pyright: ignore[reportAttributeAccessIssue]  # the backend is Redis
        client.pipeline().lpush(REFUSED, kept).ltrim(REFUSED, 0, MOST_REFUSED - 1).execute()
    except RedisError as error:
        _log.warning("A message that was dropped is not kept for a look.", error=error)
