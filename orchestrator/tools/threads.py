"""Run tools' synchronous methods in a limited number of threads."""

import asyncio
import contextlib
import contextvars
import threading
from collections import Counter, deque
from collections.abc import Callable
from functools import partial

from orchestrator.tools.middleware import OrphanedCalls
from orchestrator.types import ToolId

SHARED_THREADS = 64
THREADS_PER_TOOL = 16
OWN_THREADS = 4  # reserved threads for each tool, in addition to the shared threads


class ToolThreads:
    """Daemon threads for synchronous methods.

    Each tool has a few reserved threads, so that a hanging tool never blocks another tool. All tools share
    the other threads.
    """

    def __init__(self, orphans: OrphanedCalls) -> None:
        self._orphans = orphans
        self._running: Counter[ToolId] = Counter()
        self._waiting: deque[tuple[ToolId, asyncio.Future[None]]] = deque()

    async def run(self, tool_id: ToolId, work: Callable[[], object]) -> object:
        """Run `work` once a thread is free. If canceled, orphan the thread and raise immediately."""
        await self._take_place(tool_id)
        future = _start(tool_id, work)
        future.add_done_callback(lambda _: self._give_back(tool_id))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._orphans.add(tool_id, future)
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
            if turn.done() and not turn.cancelled():  # the thread became free too late
                self._give_back(tool_id)
            raise

    def _has_place(self, tool_id: ToolId) -> bool:
        running = self._running[tool_id]
        if running < OWN_THREADS:
            return True
        shared = sum(max(0, count - OWN_THREADS) for count in self._running.values())
        return running < THREADS_PER_TOOL and shared < SHARED_THREADS

    def _give_back(self, tool_id: ToolId) -> None:
        """Free a thread for the first eligible waiter."""
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
    """Start a thread. Its future is never canceled, and is done when the thread is."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            finish = partial(future.set_result, context.run(work))
        except BaseException as error:  # noqa: BLE001 - the future passes the error on
            finish = partial(future.set_exception, _fit_for_future(error))
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller is waiting
            loop.call_soon_threadsafe(finish)

    threading.Thread(target=run, name=f"tool {tool_id}", daemon=True).start()
    return future


def _fit_for_future(error: BaseException) -> Exception:
    """Wrap errors that a future must not raise.

    An exit would end the loop, and StopIteration is not permitted.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"The tool raised {type(error).__name__}.")
