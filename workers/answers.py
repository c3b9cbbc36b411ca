"""End Celery tasks that wait for a turn, with their callbacks, chain, chord and result (RT-30).

When a turn ends, the tasks that wait for it are put in the outbox, so that any worker can end them, even after
a crash.
"""

from typing import Any, Final

from celery import Celery
from celery.app.task import Context
from celery.canvas import maybe_signature
from celery.utils.time import maybe_iso8601, maybe_make_aware
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.adapters.postgres.turns.awaited import EndingTask, PostgresAwaitedTasks
from orchestrator.adapters.threads import run_in_thread
from orchestrator.bootstrap import Ports
from orchestrator.errors import NotFound, Unavailable
from orchestrator.ports.outbox import OutboxMessage
from orchestrator.ports.tasks import CANCEL_TURN
from orchestrator.turns.turn import TurnStatus, turn_object
from orchestrator.types import JsonObject, TurnId
from workers.messages.flower_events import FlowerEvents
from workers.messages.refusal import TaskRefused
from workers.submission import BrokerTask, describe_end, follow_up_id

FACTS: Final = (
    *(
        "id",
        "task",
        "root_id",
        "parent_id",
        "group",
        "group_index",
        "chord",
        "chain",
        "callbacks",
        "errbacks",
    ),
    *("ignore_result", "delivery_info", "reply_to", "correlation_id", "stamps", "stamped_headers"),
    "replaced_task_nesting",
)
"""The fields of Celery's task request that are stored to end the task later. Arguments are not stored."""


def describe_task(request: Any) -> BrokerTask:
    """Return the `BrokerTask` of a Celery request, with the fields needed to end the task later."""
    facts = {name: request.get(name) for name in FACTS}
    return BrokerTask(request.id, facts, _read_time(request))


def name_callbacks(request: Any) -> None:
    """Assign deterministic IDs to a request's callbacks and errbacks, unless they already have IDs.

    If the request's message is redelivered, receivers can then recognize the duplicates.
    """
    for kind in ("callbacks", "errbacks"):
        for place, signature in enumerate(request.get(kind) or ()):
            signature["options"].setdefault("task_id", follow_up_id(request.id, f"{kind}:{place}"))


def _read_time(request: Any) -> Any:
    expires = maybe_iso8601(request.expires)
    return None if expires is None else maybe_make_aware(expires)


class TaskEnder:
    """An outbox handler that ends waiting Celery tasks.

    `flower`: publishes task events, or None if the worker sends no task events.
    """

    def __init__(
        self, app: Celery, ports: Ports, awaited: PostgresAwaitedTasks, flower: FlowerEvents | None
    ) -> None:
        self._app: Any = app
        self._ports = ports
        self._awaited = awaited
        self._flower = flower

    async def deliver(self, message: OutboxMessage) -> None:
        """End the task that an outbox message names, unless the task has already ended.

        Raises Unavailable if the database, the broker or the result backend doesn't respond.
        """
        task_id: str = message.payload["task_id"]
        ending = await self._awaited.ending(task_id)
        if ending is None:
            return
        result = await self._result(message, ending)
        try:
            await run_in_thread(self._end, ending, result)
        except (OperationalError, RedisError, OSError) as error:
            raise Unavailable(f"The task's result could not be sent yet: {error}") from error
        await self._awaited.answered(task_id)

    async def _result(self, message: OutboxMessage, ending: EndingTask) -> JsonObject | TaskRefused:
        assert message.turn_id is not None
        try:
            turn = await self._ports.stores.inbox.turn(message.tenant_id, TurnId(message.turn_id))
            if ending.request["task"] == CANCEL_TURN or ending.stopped is not None:
                return await describe_end(self._ports, turn)
            return turn_object(turn)
        except NotFound as error:  # the turn was deleted
            return TaskRefused.because_of(error)

    def _end(self, ending: EndingTask, result: JsonObject | TaskRefused) -> None:
        request: Any = Context(ending.request)
        name_callbacks(request)
        self._app.backend.always_retry = False  # thread-local; the outbox retries, so don't block the thread
        if isinstance(result, TaskRefused):
            self._app.backend.mark_as_failure(request.id, result, request=request)
            state = "failed"
        elif ending.stopped is not None and result["status"] != TurnStatus.DONE:
            self._app.backend.mark_as_revoked(request.id, _tell(ending.stopped, result), request=request)
            state = "revoked"
        else:
            self._send_following(request, result)
            self._app.backend.mark_as_done(request.id, result, request)
            state = "succeeded"
        if self._flower is not None:
            self._flower.show_ended(request.id, state, ending.waited_s)

    def _send_following(self, request: Any, result: JsonObject) -> None:
        """Send callbacks and the rest of the chain, as Celery's tracer does before it stores a result."""
        options = {"parent_id": request.id, "root_id": request.root_id or request.id}
        for callback in request.callbacks or ():
            signature: Any = maybe_signature(callback, app=self._app)
            request.children.append(signature.apply_async((result,), **options, retry=False))
        if request.chain:
            following: Any = maybe_signature(request.chain[-1], app=self._app)
            sent = following.apply_async((result,), chain=request.chain[:-1], **options, retry=False)
            request.children.append(sent)
        if request.chord:
            request.chord.setdefault("options", {}).update(options)


def _tell(stopped: str, result: JsonObject) -> str:
    done = [entry["tool_id"] for entry in result["done"]]
    what = f"with side effects: {', '.join(done)}" if done else "without side effects"
    return f"{stopped}; turn {result['turn_id']} is {result['status']}, {what}"
