"""Whether housekeeping stands back for turns at present (IF-14). It never does so for longer than it may."""

from __future__ import annotations

from orchestrator.ports.pressure import Pressure
from orchestrator.telemetry import get_logger

_log = get_logger(__name__)


class Patience:
    """Args: `above_s`: what turns may wait before housekeeping does; `at_most_s`: how long it does then."""

    def __init__(self, pressure: Pressure, *, above_s: float, at_most_s: float) -> None:
        self._pressure = pressure
        self._above_s = above_s
        self._at_most_s = at_most_s
        self._pressed = False

    @property
    def waited_s(self) -> float:
        """How long housekeeping must have waited to be done now."""
        return self._at_most_s if self._pressed else 0.0

    async def look(self) -> None:
        """Measure anew. Raises Unavailable, and then keeps to what was measured before."""
        wait_s = await self._pressure.turn_wait_s()
        pressed = wait_s > self._above_s
        if pressed is not self._pressed:
            what = "is put off" if pressed else "goes on"
            _log.info(f"Housekeeping {what}.", turn_wait_s=round(wait_s, 3))
        self._pressed = pressed
