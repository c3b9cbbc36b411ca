"""Tool calls that go on although nobody waits for them any more, and the threads of plain methods.

Both are bounded: too many strays of a tool and it is not called; too many threads and its callers wait.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from orchestrator.telemetry import get_logger
from orchestrator.types import ToolId

SHARED_THREADS = 64
THREADS_PER_TOOL = 16
OWN_THREADS = 4
"""Of `THREADS_PER_TOOL`, those that a tool always gets: others that hang in theirs cannot take them."""
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
            _log.warning("A tool that nobody waited for broke.", tool=tool_id, error=error)


class ToolThreads:
    """Runs plain methods in threads of their own, which do not keep the process from ending.

    A tool has a few threads to itself, and more from those that all share. So tools that hang, however
    many calls of however many tools, keep no other tool from running.
    """

    def __init__(self, strays: Strays) -> None:
        self._strays = strays
        self._running: Counter[ToolId] = Counter()
        self._waiting: deque[tuple[ToolId, asyncio.Future[None]]] = deque()

    async def run(self, tool_id: ToolId, work: Callable[[], object]) -> object:
        """Run `work` in a thread. Cancelled, it returns at once and the thread becomes a stray."""
        await self._take_place(tool_id)
        future = _start(tool_id, work)
        future.add_done_callback(lambda _: self._give_back(tool_id))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._strays.add(tool_id, future)
            raise

    async def _take_place(self, tool_id: ToolId) -> None:
        if self._has_place(tool_id):
            self._running[tool_id] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((tool_id, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place came too late to be used
                self._give_back(tool_id)
            raise

    def _has_place(self, tool_id: ToolId) -> bool:
        running = self._running[tool_id]
        if running < OWN_THREADS:
            return True
        shared = sum(max(0, count - OWN_THREADS) for count in self._running.values())
        return running < THREADS_PER_TOOL and shared < SHARED_THREADS

    def _give_back(self, tool_id: ToolId) -> None:
        """Free a place, for the first in the queue that it is good for."""
        self._running[tool_id] -= 1
        for waiting in list(self._waiting):
            wanted, turn = waiting
            if turn.done():
                self._waiting.remove(waiting)
            elif self._has_place(wanted):
                self._waiting.remove(waiting)
                self._running[wanted] += 1
                turn.set_result(None)
                return


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
