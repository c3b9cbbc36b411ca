"""Runs tools' plain methods in threads. They are bounded: where there are too many, callers wait."""

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
OWN_THREADS = 4  # of these, those that a tool always gets: others that hang in theirs cannot take them


class ToolThreads:
    """Runs plain methods in threads of their own, which do not keep the process from ending.

    A tool has a few threads to itself, and more from those that all share. So tools that hang, however
    many calls of however many tools, keep no other tool from running.
    """

    def __init__(self, orphans: OrphanedCalls) -> None:
        self._orphans = orphans
        self._running: Counter[ToolId] = Counter()
        self._waiting: deque[tuple[ToolId, asyncio.Future[None]]] = deque()

    async def run(self, tool_id: ToolId, work: Callable[[], object]) -> object:
        """Run `work` in a thread. Cancelled, it returns at once and the thread is orphaned."""
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
    """Start a thread; its future is never cancelled, so it is done when the thread is."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            finish = partial(future.set_result, context.run(work))
        except BaseException as error:  # noqa: BLE001 - whoever waits for the future gets it
            finish = partial(future.set_exception, _fit_for_future(error))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(finish)

    threading.Thread(target=run, name=f"tool {tool_id}", daemon=True).start()
    return future


def _fit_for_future(error: BaseException) -> Exception:
    """Wrap what must not reach a future: an exit would end the loop, and a future takes no StopIteration."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"The tool raised {type(error).__name__}.")
