"""Tool calls that go on although nobody waits for them any more, and the threads of plain methods.

Both are bounded: too many strays of a tool and it is not called; too many threads and callers wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from orchestrator.telemetry import get_logger
from orchestrator.types import ToolId

THREADS = 64
THREADS_PER_TOOL = 16
STRAYS_PER_TOOL = 8

_log = get_logger(__name__)


class Strays:
    """Counts the calls of each tool that were given up and have not ended."""

    def __init__(self) -> None:
        self._running: Counter[ToolId] = Counter()
        self._futures: set[asyncio.Future[Any]] = set()

    def count(self, tool_id: ToolId) -> int:
        """How many given-up calls of a tool still run."""
        return self._running[tool_id]

    def too_many(self, tool_id: ToolId) -> bool:
        return self._running[tool_id] >= STRAYS_PER_TOOL

    def add(self, tool_id: ToolId, future: asyncio.Future[Any]) -> None:
        """Hear a given-up call out without waiting for it."""
        if future.done():
            self._hear(tool_id, future)
            return
        self._running[tool_id] += 1
        if self._running[tool_id] == STRAYS_PER_TOOL:
            _log.error("Too many given-up calls of a tool hang: it is not called for now.", tool=tool_id)
        self._futures.add(future)
        future.add_done_callback(lambda _: self._forget(tool_id, future))

    def _forget(self, tool_id: ToolId, future: asyncio.Future[Any]) -> None:
        self._futures.discard(future)
        self._running[tool_id] -= 1
        self._hear(tool_id, future)

    def _hear(self, tool_id: ToolId, future: asyncio.Future[Any]) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            _log.warning("A tool that nobody waited for broke.", tool=tool_id, error=str(error))


class ToolThreads:
    """Runs plain methods in threads of their own, which do not keep the process from ending."""

    def __init__(self, strays: Strays) -> None:
        self._strays = strays
        self._all = asyncio.Semaphore(THREADS)
        self._of_tool: defaultdict[ToolId, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(THREADS_PER_TOOL)
        )

    async def run(self, tool_id: ToolId, work: Callable[[], object]) -> object:
        """Run `work` in a thread. Cancelled, it returns at once and the thread becomes a stray."""
        of_tool = self._of_tool[tool_id]
        await of_tool.acquire()
        try:
            await self._all.acquire()
        except asyncio.CancelledError:
            of_tool.release()
            raise
        future = _start(tool_id, work)
        future.add_done_callback(lambda _: self._give_back(of_tool))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._strays.add(tool_id, future)
            raise

    def _give_back(self, of_tool: asyncio.Semaphore) -> None:
        self._all.release()
        of_tool.release()


def _start(tool_id: ToolId, work: Callable[[], object]) -> asyncio.Future[object]:
    """A future for what a new thread gives; it is never cancelled, so it is done when the thread is."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            settle = partial(future.set_result, context.run(work))
        except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it
            settle = partial(future.set_exception, _fit_for_future(error))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name=f"tool {tool_id}", daemon=True).start()
    return future


def _fit_for_future(error: BaseException) -> Exception:
    """An exit that a tool asks for must not end the loop, and a future takes no StopIteration."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"The tool raised {type(error).__name__}.")
