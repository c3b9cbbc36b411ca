import asyncio
import contextlib
import contextvars
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial

from orchestrator.tools.middleware import OrphanedCalls
from orchestrator.types import ToolId

THREADS_PER_TOOL = 16


class ToolThreads:
    """Daemon threads for synchronous methods, at most `THREADS_PER_TOOL` per tool.

    A hanging tool doesn't block other tools.
    """

    def __init__(self, orphans: OrphanedCalls) -> None:
        self._orphans = orphans
        self._free: defaultdict[ToolId, asyncio.Semaphore] = defaultdict(
            partial(asyncio.Semaphore, THREADS_PER_TOOL)
        )

    async def run(self, tool_id: ToolId, work: Callable[[], object]) -> object:
        """Run `work` once a thread is free. If canceled, count the thread as orphaned and raise immediately."""
        free = self._free[tool_id]
        await free.acquire()
        future = _start(tool_id, work)
        future.add_done_callback(lambda _: free.release())
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._orphans.add(tool_id, future)
            raise


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

    SystemExit would end the loop, and futures do not permit StopIteration.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"The tool raised {type(error).__name__}.")
