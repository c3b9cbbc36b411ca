"""Send messages about runs as Celery's canvas: single tasks, and the chord of a run's items (IF-8, IF-9)."""

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
from orchestrator.ports.tasks import ADVANCE_RUN, QUEUE_OF, RUN_ITEMS


class Canvas:
    """What it sends, `workers.tasks` receives."""

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


async def _sending(send: Callable[[], object]) -> None:
    try:
        await run_in_thread(send)
    except (OperationalError, RedisError, OSError) as error:
        raise Unavailable(f"The broker does not answer: {error}") from error
