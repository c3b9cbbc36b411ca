"""What Internal flows need of Celery: task names, queues, the chord of a run's items. Nothing else knows it.

Every message says only that a run may have something to do: one that is lost is replaced by the
reconciler, one that is doubled finds nothing to do (IF-8, IF-9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from celery import Celery, chord
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.adapters.threads import run_in_thread
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.records import Hint
from orchestrator.ports.runs.status import Phase
from orchestrator.ports.tasks import ADVANCE_RUN, QUEUE_OF, RUN_ITEMS, START_RUN
from orchestrator.types import JsonObject
from workers.task_redaction import DISCREET


class Canvas:
    """Sends what the tasks below receive."""

    def __init__(self, app: Celery) -> None:
        self._app: Any = app

    async def hint(self, hint: Hint) -> None:
        """Say that a run may have something to do. Raises Unavailable."""
        name = RUN_ITEMS if hint.phase is Phase.ITEMS else ADVANCE_RUN
        await _sending(lambda: self._signature(name, hint).apply_async(retry=False))

    async def spread(self, hint: Hint, holders: int) -> None:
        """Have a run's items done by several tasks at once, then `after_all`: a chord. Raises Unavailable.

        A flat chord of equal tasks, which none of the known traps of nested canvas concerns.
        """
        header = [self._signature(RUN_ITEMS, hint, in_chord=True) for _ in range(holders)]
        body = self._signature(ADVANCE_RUN, hint)
        await _sending(lambda: chord(header, body, app=self._app).apply_async(retry=False))

    def _signature(self, name: str, hint: Hint, **more: Any) -> Any:
        """The message, shown in Flower under a name that people can read."""
        stage = "items" if name == RUN_ITEMS else "advance"
        arguments = {"run_id": hint.run_id, "flow": hint.flow, **more}
        return self._app.signature(name, kwargs=arguments, immutable=True).set(
            queue=QUEUE_OF[hint.urgency], shadow=f"{hint.flow}.{stage}"
        )


def register_internal_tasks(
    app: Celery,
    *,
    start: Callable[[JsonObject, str], None],
    advance: Callable[[str, str], None],
    items: Callable[[str, str, bool], None],
) -> None:
    """Add the tasks; each is a thin shell over the worker's process."""

    @app.task(name=START_RUN, bind=True, shared=False, **DISCREET)
    def start_run(self: Any, **arguments: Any) -> None:
        """Start a flow, or all flows of a trigger; a message that is delivered twice starts once."""
        start(arguments, f"message:{self.request.id}")

    @app.task(name=ADVANCE_RUN, acks_late=False, shared=False)
    def advance_run(run_id: str, flow: str) -> None:
        advance(run_id, flow)

    @app.task(
        name=RUN_ITEMS, acks_late=False, shared=False
    )  # a chord counts its tasks also when results are ignored
    def run_items(run_id: str, flow: str, in_chord: bool = False) -> None:
        items(run_id, flow, in_chord)


async def _sending(send: Callable[[], object]) -> None:
    try:
        await run_in_thread(send)
    except (OperationalError, RedisError, OSError) as error:
        raise Unavailable(f"The broker does not answer: {error}") from error
