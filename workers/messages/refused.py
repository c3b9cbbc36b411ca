"""Record messages dropped from a queue, without logging their contents (RT-22)."""

import time
from typing import Any

import orjson
from celery import current_app
from redis.exceptions import RedisError

from orchestrator.adapters.dead_letters import DeadLetters
from orchestrator.adapters.redis.worker_registry import MOST_REFUSED, REFUSED
from orchestrator.ports.tasks import QUEUES
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import MESSAGES_REFUSED

_log = get_logger(__name__)


def keep_dead_letter(message: Any, code: str, **about: Any) -> bool:
    """Store a permanently rejected message for replay by an operator.

    Return False if Redis is unavailable. A message that can't be represented as JSON is only logged.
    """
    info = message.delivery_info or {}
    facts = {"queue": info.get("routing_key"), "code": code, **about}
    try:
        DeadLetters(_client()).keep(facts, message)
    except (
        RedisError,
        OSError,
        TypeError,
        ValueError,
    ) as error:  # some messages can't be represented as JSON
        _log.warning("Could not store a refused message for replay.", code=code, error=type(error).__name__)
        return isinstance(error, (TypeError, ValueError))
    return True


def note_refused(event: str, queue: str | None, wrong: str, **about: Any) -> None:
    """Count a dropped message, log it as `event`, and add it to the list for inspection.

    `wrong`: the invalid part. `about`: additional facts, which must not include contents.
    """
    # Senders choose the queue name, and each unknown name would create another time series.
    MESSAGES_REFUSED.labels(queue if queue in QUEUES else "unknown").inc()
    _log.error(event, queue=queue, wrong=wrong, **about)
    kept = orjson.dumps({"at": time.time(), "queue": queue, "wrong": wrong, **about})
    try:
        _client().pipeline().lpush(REFUSED, kept).ltrim(REFUSED, 0, MOST_REFUSED - 1).execute()
    except RedisError as error:
        _log.warning("Could not store a dropped message for inspection.", error=error)


def _client() -> Any:
    return current_app.backend.client  # pyright: ignore[reportAttributeAccessIssue]  # the backend is Redis
