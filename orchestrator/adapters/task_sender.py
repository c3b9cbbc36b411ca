"""Sends Celery messages from processes that are not workers. Fails soon, never retries.

A failed send may have arrived all the same, so receivers are idempotent.
"""

from collections.abc import Callable
from typing import Any

from celery import Celery, chain, chord, group  # pyright: ignore[reportMissingTypeStubs]
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.adapters.redis.address import for_celery, sentinel_options
from orchestrator.adapters.threads import run_in_thread
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.records import Hint, Started
from orchestrator.ports.runs.status import Phase
from orchestrator.ports.tasks import ADVANCE_RUN, QUEUE_OF, QUEUES, ROUTES, RUN_ITEMS, RUN_SESSION
from orchestrator.telemetry import get_logger
from orchestrator.turns.submission import MAX_WAIT_S
from orchestrator.types import JsonObject, SessionId

PUBLISH_TIMEOUT_S = 2
CONNECT_TIMEOUT_S = 2
HEALTH_CHECK_EVERY_S = 5
VISIBILITY_TIMEOUT_S = int(MAX_WAIT_S) + 30
"""What no consumer has acknowledged for so long is given to another, whoever has it."""

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
        self._canvas = RunCanvas(self._app, joins=False)

    async def wake(self, session_id: SessionId) -> None:
        """Send `orchestrator.run_session`. Raises Unavailable."""
        arguments = {"session_id": session_id}
        await sending(
            lambda: self._app.send_task(RUN_SESSION, kwargs=arguments, retry=False, ignore_result=True)
        )

    async def send_runs(self, started: Started) -> None:
        """Send `internal_flows.advance` for runs that may begin; never raises."""
        try:
            await self._canvas.send(started)
        except Unavailable as error:
            _log.warning("Messages for runs could not be sent.", runs=started.runs, error=error)

    def close(self) -> None:
        """Close the connections to the broker."""
        self._app.close()


class RunCanvas:
    """The messages about runs of Internal flows; what it sends, `workers.tasks` receives.

    Args:
        joins: whether this process may write results, of which a chord counts those of its tasks; the gateway may not.
    """

    def __init__(self, app: Celery, *, joins: bool = True) -> None:
        self._app: Any = app
        self._joins = joins

    async def send(self, started: Started) -> None:
        """Say that runs may begin: of a sequence as a `chain`, with its fan-ins as `chord`s; of others each by itself.

        A wave's message names the runs of the next one, for which no other message is sent. Raises Unavailable.
        """
        waves = started.waves
        if not waves or (len(waves[0]) > 1 and not self._joins):
            failure: Unavailable | None = None
            for hint in started.hints:
                try:
                    await self.hint(hint)
                except Unavailable as error:  # the others may come through
                    failure = error
            if failure is not None:
                raise failure
            return
        links: list[Any] = []
        for wave, following in zip(waves, (*waves[1:], ()), strict=True):
            then = [hint.run_id for hint in following]
            tasks = [self._signature(ADVANCE_RUN, hint, then=then) for hint in wave]
            links.append(group(tasks, app=self._app) if len(tasks) > 1 else tasks[0])
        await sending(lambda: self._apply(chain(*links, app=self._app)))

    async def hint(self, hint: Hint) -> None:
        """Say that a run may have something to do. Raises Unavailable."""
        name = RUN_ITEMS if hint.phase is Phase.ITEMS else ADVANCE_RUN
        await sending(lambda: self._signature(name, hint).apply_async(retry=False))

    async def spread(self, hint: Hint, holders: int) -> None:
        """Have a run's items done by several tasks at once, then `after_all`: a chord. Raises Unavailable.

        A flat chord of equal tasks, which none of the known traps of nested canvas concerns.
        """
        header = [self._signature(RUN_ITEMS, hint, in_chord=True) for _ in range(holders)]
        body = self._signature(ADVANCE_RUN, hint)
        await sending(lambda: self._apply(chord(header, body, app=self._app)))

    def _apply(self, canvas: Any) -> None:
        """Send it, and wait for nothing: Celery would keep the results of a group's tasks for ever."""
        canvas.apply_async(retry=False)
        for awaited in getattr(self._app.backend, "_pending_results", ()):
            awaited.clear()

    def _signature(self, name: str, hint: Hint, **more: Any) -> Any:
        """The message, shown in Flower under a name that people can read."""
        stage = "items" if name == RUN_ITEMS else "advance"
        arguments = {"run_id": hint.run_id, "flow": hint.flow, **more}
        return self._app.signature(name, kwargs=arguments, immutable=True).set(
            queue=QUEUE_OF[hint.urgency], shadow=f"{hint.flow}.{stage}", ignore_result=True
        )


async def sending(send: Callable[[], object]) -> None:
    """Send in a thread. Raises Unavailable."""
    try:
        await run_in_thread(send)
    except (OperationalError, RedisError, OSError) as error:
        raise Unavailable(f"The broker does not answer: {error}") from error
