"""Publish the progress of runs to their sessions while items are running (RT-15, IF-16)."""

import time

from orchestrator.adapters.postgres.runs.work import PostgresRunWork
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.work import RunFacts
from orchestrator.ports.turns import LiveEvents
from orchestrator.telemetry import get_logger
from orchestrator.turns.event import Event

AT_MOST_EVERY_S = 1.0
REMEMBERED = 1000

_log = get_logger(__name__)


class ProgressEvents:
    """A publisher of progress events. Each process with a share of a run publishes the run's progress."""

    def __init__(self, work: PostgresRunWork, live: LiveEvents | None) -> None:
        self._work = work
        self._live = live
        self._published_at: dict[str, float] = {}

    async def publish(self, facts: RunFacts) -> None:
        """Publish a run's progress to its session, if any, at most once per second.

        If the store is unavailable, only log a warning.
        """
        if facts.session_id is None or not self._is_due(facts.run_id):
            return
        try:
            logged = await self._work.log_progress(facts.run_id)
        except Unavailable as error:
            _log.warning("Could not log the progress of a run.", run=facts.run_id, error=error)
            return
        if logged is not None and self._live is not None:
            number, payload = logged
            event = Event(facts.session_id, "run_progress", None, payload, number)
            await self._live.publish(facts.session_id, (event,))

    def _is_due(self, run_id: str) -> bool:
        now = time.monotonic()
        if now - self._published_at.get(run_id, -AT_MOST_EVERY_S) < AT_MOST_EVERY_S:
            return False
        while len(self._published_at) >= REMEMBERED:
            del self._published_at[next(iter(self._published_at))]
        self._published_at[run_id] = now
        return True
