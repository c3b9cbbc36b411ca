"""Defer maintenance while turns wait for workers, up to a maximum time (IF-14)."""

from orchestrator.adapters.postgres.status import PostgresStatus
from orchestrator.telemetry import get_logger

_log = get_logger(__name__)


class Backpressure:
    """A switch that defers maintenance runs while turns wait for workers.

    Args:
        above_s: turn wait in seconds above which maintenance runs are deferred.
        at_most_s: maximum time that a maintenance run is deferred, in seconds.
    """

    def __init__(self, load: PostgresStatus, *, above_s: float, at_most_s: float) -> None:
        self._load = load
        self._above_s = above_s
        self._at_most_s = at_most_s
        self._deferring = False

    @property
    def waited_s(self) -> float:
        """Return the minimum time that a maintenance run must have waited before it starts, in seconds."""
        return self._at_most_s if self._deferring else 0.0

    async def measure(self) -> None:
        """Measure how long turns wait, and start or end the deferral of maintenance. Raises Unavailable."""
        wait_s = await self._load.turn_wait_s()
        deferring = wait_s > self._above_s
        if deferring is not self._deferring:
            what = "is deferred" if deferring else "continues"
            _log.info(f"Maintenance {what}.", turn_wait_s=round(wait_s, 3))
        self._deferring = deferring
