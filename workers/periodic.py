import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.telemetry import get_logger

RENEW_EVERY_S = 1.0
MEASURE_LOAD_EVERY_S = 0.5
OUTBOX_GATHERS_S = 0.25
"""Pause between outbox sends, in seconds. Each send batches the messages of several turns."""
END_WAITS_EVERY_S = 1.0
DELIVER_EVENTS_EVERY_S = 0.5
PROBE_EVERY_S = 2.0
PAUSE_AFTER_FAILURE_S = 1.0

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PeriodicJob:
    """A step that a worker repeats forever, with a pause of `every_s` seconds after each run."""

    name: str
    every_s: float
    step: Callable[[], Awaitable[object]]

    async def run(self) -> None:
        """Repeat the step. After a failure, pause for at least a second.

        Log only the first of consecutive failures, and the recovery.
        """
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
