"""Tells sessions how far their runs have come: into the log and live, now and then (RT-15, IF-16)."""

from __future__ import annotations

import time

from orchestrator.errors import Unavailable
from orchestrator.ports.events import LiveEvents
from orchestrator.ports.runs import Progress, RunFacts, RunStatus, RunWork
from orchestrator.telemetry import get_logger
from orchestrator.turns.event import Event
from orchestrator.types import JsonObject, SessionId

AT_MOST_EVERY_S = 1.0
REMEMBERED = 1000

_log = get_logger(__name__)


class ProgressNotes:
    """One per process; several that are at work on one run tell of it each."""

    def __init__(self, work: RunWork, live: LiveEvents | None) -> None:
        self._work = work
        self._live = live
        self._told_at: dict[str, float] = {}

    async def note(
        self, facts: RunFacts, status: RunStatus, items: Progress | None = None, *, last: bool = False
    ) -> None:
        """Tell unless it was told a moment ago; the end always. A store that is down is no reason to stop."""
        if facts.session_id is None or not (last or self._is_due(facts.run_id)):
            return
        try:
            await self._tell(facts, facts.session_id, status, items)
        except Unavailable as error:
            _log.warning("The progress of a run could not be told.", run=facts.run_id, error=str(error))

    def _is_due(self, run_id: str) -> bool:
        now = time.monotonic()
        if now - self._told_at.get(run_id, -AT_MOST_EVERY_S) < AT_MOST_EVERY_S:
            return False
        while len(self._told_at) >= REMEMBERED:
            del self._told_at[next(iter(self._told_at))]
        self._told_at[run_id] = now
        return True

    async def _tell(
        self, facts: RunFacts, session_id: SessionId, status: RunStatus, items: Progress | None
    ) -> None:
        progress = items or await self._work.progress(facts.run_id)
        payload: JsonObject = {
            "run_id": facts.run_id,
            "flow": facts.flow,
            "status": status.value,
            "redo_count": facts.redo_count,
            "total": progress.total,
            "done": progress.done,
            "skipped": progress.skipped,
            "failed": progress.failed,
        }
        number = await self._work.note_progress(session_id, payload)
        if number is not None and self._live is not None:
            await self._live.publish(session_id, (Event(session_id, "run_progress", None, payload, number),))
