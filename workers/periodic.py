import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.telemetry import get_logger

RENEW_EVERY_S = 1.0
MEASURE_LOAD_EVERY_S = 1.0
OUTBOX_GATHERS_S = 0.25
"""Pause between outbox sends, in seconds. Each send batches the messages of several turns."""
END_WAITS_EVERY_S = 1.0
LOOK_FOR_ENDS_EVERY_S = 1.0
"""Maximum interval between checks for tasks whose turn ended in another process, in seconds."""
DELIVER_EVENTS_EVERY_S = 1.0
PROBE_EVERY_S = 2.0
PAUSE_AFTER_FAILURE_S = 1.0
APART_S = 0.05
"""Interval between the first runs of a process's jobs, in seconds. Jobs in step would need a connection each."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PeriodicJob:
    """A step that a worker repeats forever, with a pause of `every_s` seconds after each run."""

    name: str
    every_s: float
    step: Callable[[], Awaitable[object]]

    def start(self, after_s: float) -> asyncio.Task[None]:
        return asyncio.create_task(self._run(after_s), name=self.name)

    async def _run(self, after_s: float) -> None:
        """Repeat the step. After a failure, pause for at least a second.

        Log only the first of consecutive failures, and the recovery.
        """
        await asyncio.sleep(after_s)
        failing = False
        while True:
            pause_s = self.every_s
            try:
                await self.step()
            except Exception as error:  # noqa: BLE001 - the next round may succeed
                if not failing:
                    _log.warning("A periodic job failed.", job=self.name, error=error)
                failing, pause_s = True, max(self.every_s, PAUSE_AFTER_FAILURE_S)
            else:
                if failing:
                    _log.info("A periodic job recovered.", job=self.name)
                failing = False
            await asyncio.sleep(pause_s)
