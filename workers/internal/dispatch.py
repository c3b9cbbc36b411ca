"""Let workers know of runs that have something to do; without a broker, carry them out here (IF-9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from celery import Celery, chord
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.adapters.threads import run_in_thread
from orchestrator.errors import ParleyError, Unavailable
from orchestrator.ports.runs.records import Hint
from orchestrator.ports.runs.status import Phase, Urgency
from orchestrator.ports.tasks import ADVANCE_RUN, QUEUE_OF, RUN_ITEMS
from orchestrator.telemetry import get_logger


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


_log = get_logger(__name__)


class Dispatcher:
    """Args: `carry_out`: does here what a hint is about; None in a process that does not carry runs out."""

    def __init__(self, canvas: Canvas, carry_out: Callable[[Hint], Awaitable[None]] | None) -> None:
        self._canvas = canvas
        self._carry_out = carry_out
        self._later: set[asyncio.Task[None]] = set()

    def send(self, hints: tuple[Hint, ...]) -> None:
        """Send hints, each at its time, without waiting for it."""
        for hint in hints:
            self._do_later(self._send(hint))

    def carry_out_urgent(self, hints: tuple[Hint, ...]) -> tuple[Hint, ...]:
        """Begin here what a turn waits for, not behind tasks of housekeeping; the other hints."""
        if self._carry_out is None:
            return hints
        for hint in hints:
            if hint.urgency is Urgency.URGENT:
                self._do_later(self._carry_out(hint))
        return tuple(hint for hint in hints if hint.urgency is not Urgency.URGENT)

    async def spread(self, hint: Hint, holders: int) -> None:
        """Have the items of a run done by several tasks at once."""
        try:
            await self._canvas.spread(hint, holders)
        except Unavailable as error:
            _log.warning("A run's items could not be sent to workers.", run=hint.run_id, error=error)
            if self._carry_out is not None:
                self._do_later(self._carry_out(hint))

    def cancel(self) -> None:
        """Drop what has not been done yet; the reconciler comes back to it."""
        for task in self._later:
            task.cancel()

    async def _send(self, hint: Hint) -> None:
        if hint.after_s > 0:
            await asyncio.sleep(hint.after_s)
        try:
            await self._canvas.hint(hint)
        except Unavailable as error:
            _log.warning("A run could not be sent to workers.", run=hint.run_id, error=error)
            if self._carry_out is not None:
                await self._carry_out(hint)

    def _do_later(self, what: Awaitable[None]) -> None:
        task = asyncio.ensure_future(_logged(what))
        self._later.add(task)
        task.add_done_callback(self._later.discard)


async def _logged(what: Awaitable[None]) -> None:
    try:
        await what
    except ParleyError as error:
        _log.warning("A run was interrupted; the reconciler comes back to it.", error=error)
