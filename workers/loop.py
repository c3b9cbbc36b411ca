"""The event loop of a worker process, on a separate thread (RT-2), and its watchdog.

If the loop stalls for too long, the watchdog exits the process. Other workers continue after the process's
leases expire.
"""

import asyncio
import faulthandler
import gc
import os
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import uvloop

from orchestrator.telemetry import get_logger

WATCH_EVERY_S = 1.0
STALLED_EXIT_CODE = 70
COLLECT_AFTER = (20_000, 20, 50)

_log = get_logger(__name__)
_T = TypeVar("_T")


def collect_seldom() -> None:
    """Collect garbage less often, because it takes a fifth of the turns' CPU time by default.

    The existing objects, about 300,000, are permanent and never scanned again. A turn creates a few thousand
    objects, and reference counting frees nearly all of them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


class LoopThread:
    """An event loop on a separate thread, started on construction.

    Args:
        stalled_after_s: seconds without progress after which the process exits.
    """

    def __init__(self, *, stalled_after_s: float) -> None:
        self._stalled_after_s = stalled_after_s
        self.loop = uvloop.new_event_loop()
        self._stopped = threading.Event()
        self._ticks = 0
        self._thread = threading.Thread(target=self._run, name="parley-loop", daemon=True)
        self._watch = threading.Thread(target=self._watch_over, name="parley-watch", daemon=True)
        self._thread.start()
        self._watch.start()

    def submit(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Schedule a coroutine on the loop. Safe to call from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def stop(self) -> None:
        """Stop the loop, cancel its tasks, and wait for its thread."""
        self._stopped.set()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        remaining = asyncio.all_tasks(self.loop)
        for task in remaining:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*remaining, return_exceptions=True))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()

    def _tick(self) -> None:
        self._ticks += 1

    def _watch_over(self) -> None:
        """Exit the process when the loop stalls.

        Count this thread's waits instead of elapsed time, so that a suspended process doesn't look stalled.
        """
        silent_s, seen = 0.0, -1
        while not self._stopped.wait(WATCH_EVERY_S):
            if self._ticks != seen:
                silent_s, seen = 0.0, self._ticks
                self.loop.call_soon_threadsafe(self._tick)
                continue
            silent_s += WATCH_EVERY_S
            if silent_s >= self._stalled_after_s:
                self._end_process(silent_s)

    def _end_process(self, silent_s: float) -> None:
        _log.error("The event loop is blocked; this process exits.", silent_s=silent_s)
        faulthandler.dump_traceback(all_threads=True)
        time.sleep(0.1)
        os._exit(STALLED_EXIT_CODE)
