"""Let workers know of runs that have something to do; without a broker, carry them out here (IF-9)."""

import asyncio
from collections.abc import Awaitable, Callable

from orchestrator.adapters.task_sender import RunCanvas
from orchestrator.errors import ParleyError, Unavailable
from orchestrator.ports.runs.records import Hint, Started
from orchestrator.ports.runs.status import Urgency
from orchestrator.telemetry import get_logger

_log = get_logger(__name__)


class Dispatcher:
    """Args: `carry_out`: does here what a hint is about; None in a process that does not carry runs out."""

    def __init__(self, canvas: RunCanvas, carry_out: Callable[[Hint], Awaitable[None]] | None) -> None:
        self._canvas = canvas
        self._carry_out = carry_out
        self._later: set[asyncio.Task[None]] = set()

    def begin(self, started: Started) -> None:
        """Send what was started, without waiting for it."""
        self._do_later(self._begin(started))

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

    async def _begin(self, started: Started) -> None:
        try:
            await self._canvas.send(started)
        except Unavailable as error:
            _log.warning("Runs could not be sent to workers.", runs=started.runs, error=error)
            if self._carry_out is not None:
                await asyncio.gather(*map(self._carry_out, started.hints))

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
