"""Send Celery tasks. Sending fails fast and never retries.

A message may arrive even if sending failed, so receivers are idempotent.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from celery import Celery  # pyright: ignore[reportMissingTypeStubs]
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.adapters.broker_queues import TASK_QUEUES
from orchestrator.adapters.redis.address import for_celery, sentinel_options, tls_options
from orchestrator.adapters.threads import run_in_thread
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.records import Started
from orchestrator.ports.runs.status import Urgency
from orchestrator.ports.tasks import QUEUE_OF, ROUTES, RUN_FLOW, RUN_SESSION
from orchestrator.telemetry import get_logger
from orchestrator.turns.submission import MAX_WAIT_S
from orchestrator.types import JsonObject, SessionId

PUBLISH_TIMEOUT_S = 2
CONNECT_TIMEOUT_S = 2
HEALTH_CHECK_EVERY_S = 5
VISIBILITY_TIMEOUT_S = int(MAX_WAIT_S) + 30
"""Time after which Redis redelivers an unacknowledged message to another consumer, in seconds."""

_log = get_logger(__name__)


def transport_options(broker_url: str, reply_timeout_s: int) -> JsonObject:
    """Return the broker's transport options.

    `reply_timeout_s`: seconds after which a read from Redis, or a write to RabbitMQ, fails.
    """
    if is_redis(broker_url):
        return {
            "visibility_timeout": VISIBILITY_TIMEOUT_S,
            "socket_timeout": reply_timeout_s,
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "socket_keepalive": True,
            "health_check_interval": HEALTH_CHECK_EVERY_S,
            "retry_on_timeout": False,
            **sentinel_options(broker_url),
        }
    # No read timeout, because a worker's connection is silent while no messages arrive. Heartbeats detect
    # failures.
    return {"write_timeout": reply_timeout_s}


def is_redis(broker_url: str) -> bool:
    """Return whether the broker is Redis. The only other supported broker is RabbitMQ (``amqp://``)."""
    return not broker_url.startswith("amqp")


def producer_options(broker_url: str) -> JsonObject:
    """Return transport options for processes that only send. RabbitMQ must confirm each message."""
    options = transport_options(broker_url, PUBLISH_TIMEOUT_S)
    if is_redis(broker_url):
        return options
    return {**options, "read_timeout": PUBLISH_TIMEOUT_S, "confirm_publish": True}


class TaskSender:
    """A Celery client that only sends tasks. Safe to use from any thread and event loop."""

    def __init__(self, broker_url: str) -> None:
        self._app: Any = Celery(set_as_current=False, broker=for_celery(broker_url))
        self._app.conf.update(
            task_serializer="json",
            accept_content=["json"],
            task_ignore_result=True,
            task_publish_retry=False,
            broker_transport_options=producer_options(broker_url),
            broker_use_ssl=tls_options(broker_url) or None,
            broker_connection_timeout=CONNECT_TIMEOUT_S,
            task_queues=TASK_QUEUES,
            task_routes=ROUTES,
        )

    async def wake(self, session_id: SessionId) -> None:
        """Send an `orchestrator.run_session` task. Raises Unavailable if the broker is not responding."""
        arguments = {"session_id": session_id}
        await sending(
            lambda: self._app.send_task(RUN_SESSION, kwargs=arguments, retry=False, ignore_result=True)
        )

    async def send_runs(self, started: Started) -> None:
        """Send a task for each run that can start now. Failures are only logged.

        Workers send the tasks for later runs, because Celery's canvas needs the result backend.
        """
        for hint in started.hints:
            options = run_options(hint.run_id, hint.flow, hint.urgency, RUN_FLOW)
            try:
                await sending(
                    partial(self._app.send_task, RUN_FLOW, task_id=hint.run_id, retry=False, **options)
                )
            except Unavailable as error:
                _log.warning("Could not send the message for a run.", run=hint.run_id, error=error)

    def close(self) -> None:
        self._app.close()


def run_options(run_id: str, flow: str, urgency: Urgency, task: str) -> JsonObject:
    """Return the message options for a run, including a readable name for Flower."""
    return {
        "kwargs": {"run_id": run_id, "flow": flow},
        "queue": QUEUE_OF[urgency],
        "shadow": f"{flow}.{task.rpartition('.')[2]}",
        "ignore_result": task != RUN_FLOW,
    }


async def sending(send: Callable[[], object]) -> None:
    """Call `send` in a thread. Raises Unavailable if the broker is not responding."""
    try:
        await run_in_thread(send)
    except (OperationalError, RedisError, OSError) as error:
        raise Unavailable(f"The broker is not responding: {error}") from error
