"""Sends Celery messages from processes that are not workers. Fails soon, never retries.

A failed send may have arrived all the same, so receivers are idempotent.
"""

from __future__ import annotations

from typing import Any

from celery import Celery  # pyright: ignore[reportMissingTypeStubs]
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError

from orchestrator.adapters.redis.address import for_celery, sentinel_options
from orchestrator.adapters.threads import run_in_thread
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.records import Started
from orchestrator.ports.tasks import ADVANCE_RUN, QUEUE_OF, QUEUES, ROUTES, RUN_SESSION, START_RUN
from orchestrator.telemetry import get_logger
from orchestrator.turns.submission import MAX_WAIT_S
from orchestrator.types import JsonObject, SessionId

PUBLISH_TIMEOUT_S = 2
CONNECT_TIMEOUT_S = 2
HEALTH_CHECK_EVERY_S = 5
VISIBILITY_TIMEOUT_S = int(MAX_WAIT_S) + 30
"""What no consumer has acknowledged for so long is given to another, whoever has it."""
HIDDEN = "<not shown>"
SHOWN = frozenset({RUN_SESSION, ADVANCE_RUN})
"""Messages whose arguments are identifiers alone; Flower shows these."""

TASK_QUEUES = [Queue(name, Exchange(name), routing_key=name) for name in QUEUES]
"""Declared alike by all who send and receive: RabbitMQ refuses a queue that is declared in two ways."""

_log = get_logger(__name__)


def transport_options(broker_url: str, reply_timeout_s: int) -> JsonObject:
    """How to talk to this broker: every call has a time-out, dead connections are noticed."""
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
    # No time-out for reading: a worker's connection is silent as long as nothing comes. Heartbeats find out.
    return {"write_timeout": reply_timeout_s}


def is_redis(broker_url: str) -> bool:
    """Recognise a Redis by its address; the other broker that is known is RabbitMQ (``amqp://``)."""
    return not broker_url.startswith("amqp")


def producer_options(broker_url: str) -> JsonObject:
    """The same for those who only send: a broker that does not confirm soon is down."""
    options = transport_options(broker_url, PUBLISH_TIMEOUT_S)
    if is_redis(broker_url):
        return options
    return {**options, "read_timeout": PUBLISH_TIMEOUT_S, "confirm_publish": True}


class TaskSender:
    """Sends task messages; safe to use from any thread and loop."""

    def __init__(self, broker_url: str) -> None:
        self._app: Any = Celery(set_as_current=False, broker=for_celery(broker_url))
        self._app.conf.update(
            task_serializer="json",
            accept_content=["json"],
            task_ignore_result=True,
            task_publish_retry=False,
            broker_transport_options=producer_options(broker_url),
            broker_connection_timeout=CONNECT_TIMEOUT_S,
            task_queues=TASK_QUEUES,
            task_routes=ROUTES,
        )

    async def wake(self, session_id: SessionId) -> None:
        """Send `orchestrator.run_session`. Raises Unavailable."""
        await run_in_thread(self._send, RUN_SESSION, {"session_id": session_id}, None)

    async def start_run(self, payload: JsonObject, *, message_id: str) -> None:
        """Send `internal_flows.start_run`; the same `message_id` is the same run. Raises Unavailable."""
        await run_in_thread(self._send, START_RUN, payload, message_id)

    async def send_runs(self, started: Started) -> None:
        """Send `internal_flows.advance` for runs that may begin; never raises."""
        for hint in started.hints:
            try:
                await run_in_thread(
                    self._send,
                    ADVANCE_RUN,
                    {"run_id": hint.run_id, "flow": hint.flow},
                    None,
                    hint.flow,
                    QUEUE_OF[hint.urgency],
                )
            except Unavailable as error:
                _log.warning("A message for a run could not be sent.", run=hint.run_id, error=error)

    def close(self) -> None:
        """Close the connections to the broker."""
        self._app.close()

    def _send(
        self,
        name: str,
        arguments: dict[str, Any],
        message_id: str | None,
        flow: str | None = None,
        queue: str | None = None,
    ) -> None:
        try:
            self._app.send_task(
                name,
                kwargs=arguments,
                task_id=message_id,
                queue=queue,
                retry=False,
                ignore_result=True,
                argsrepr=HIDDEN,
                kwargsrepr=None if name in SHOWN else HIDDEN,
                shadow=None if flow is None else f"{flow}.advance",
            )
        except (OperationalError, OSError) as error:
            raise Unavailable(f"The broker does not answer: {error}") from error
