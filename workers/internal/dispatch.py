"""Send runs to workers, or execute them in this process if the broker is unavailable (IF-9)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from orchestrator.errors import ParleyError, Unavailable
from orchestrator.ports.runs.records import Hint
from orchestrator.ports.runs.status import Urgency
from orchestrator.ports.runs.work import Swept
from orchestrator.telemetry import get_logger
from workers.internal.canvas import RunCanvas

_log = get_logger(__name__)


class Dispatcher:
    """A sender of ready runs, with local execution as the fallback.

    Args:
        execute: executes a run in this process, or None if this process doesn't execute runs.
    """

    def __init__(self, canvas: RunCanvas, execute: Callable[[Hint], Awaitable[None]] | None) -> None:
        self._canvas = canvas
        self._execute = execute
        self._later: set[asyncio.Task[None]] = set()

    def send(self, hints: Sequence[Hint], *, root: str | None = None) -> None:
        """Send runs together in the background, after the longest of their delays. `root`: as in `RunCanvas.send`."""
        if hints:
            self._do_later(self._send(hints, root))

    def send_again(self, swept: Swept) -> None:
        """Resend work left unfinished by a lost message or a dead worker.

        If this process executes runs, it executes urgent runs immediately instead of resending them.
        """
        urgent = (
            [] if self._execute is None else [hint for hint in swept.hints if hint.urgency is Urgency.URGENT]
        )
        for hint in urgent:
            assert self._execute is not None
            self._do_later(self._execute(hint))
        self.send([hint for hint in swept.hints if hint not in urgent])
        for share in swept.shares:
            self._do_later(self._canvas.send_share(share))

    def cancel(self) -> None:
        """Cancel pending sends. The reconciler will resend the runs."""
        for task in self._later:
            task.cancel()

    async def _send(self, hints: Sequence[Hint], root: str | None) -> None:
        await asyncio.sleep(max(hint.after_s for hint in hints))
        try:
            await self._canvas.send(hints, root=root)
        except Unavailable as error:
            _log.warning("Could not send runs to workers.", runs=[hint.run_id for hint in hints], error=error)
            if self._execute is not None:
                await asyncio.gather(*map(self._execute, hints))

    def _do_later(self, what: Awaitable[None]) -> None:
        task = asyncio.ensure_future(_logged(what))
        self._later.add(task)
        task.add_done_callback(self._later.discard)


async def _logged(what: Awaitable[None]) -> None:
    try:
        await what
    except ParleyError as error:
        _log.warning("A run was interrupted; the reconciler will retry it.", error=error)
