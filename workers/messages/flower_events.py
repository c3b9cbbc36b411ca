"""Send Celery task events for turns from the worker that runs the turns.

One message can run many turns. Flower shows each turn as one task across all attempts, with its actual state,
time and worker. A thread sends the events in batches. Lost events only affect the display.
"""

import contextlib
import time
from typing import Any, Final

from celery import Celery

from orchestrator.adapters.threads import run_in_thread
from orchestrator.runtime.lane import TurnObserver
from orchestrator.turns.lease import Work
from orchestrator.turns.turn import TurnStatus
from orchestrator.types import SessionId, TurnId
from workers.messages.redaction import HIDDEN

FLUSH_EVERY_S = 1.0
KEPT_AT_MOST = 5000


RUN_TURN: Final = "orchestrator.run_turn"
"""The task name that Flower shows for turns. Messages never have this name."""
_ENDS: Final[dict[TurnStatus, tuple[str, dict[str, Any]]]] = {
    TurnStatus.DONE: ("succeeded", {"result": "None"}),
    TurnStatus.CANCELLED: ("revoked", {"terminated": False, "signum": None, "expired": False}),
}


class FlowerEvents(TurnObserver):
    """A `TurnObserver` for workers that send task events (`celery worker -E`)."""

    def __init__(self, app: Celery, hostname: str) -> None:
        self._connection: Any = app.connection_for_write()
        self._dispatcher: Any = app.events.Dispatcher(
            self._connection,
            hostname=hostname,
            buffer_group={"task"},
            buffer_limit=KEPT_AT_MOST,
            buffer_while_offline=False,
        )
        self._began: dict[TurnId, float] = {}

    def began(self, session_id: SessionId, work: Work) -> None:
        self._began[work.turn_id] = time.monotonic()
        about = {"args": f"[{session_id!r}]", "kwargs": f"{{'seq': {work.seq}}}", "root_id": work.turn_id}
        retries = work.attempts - 1
        self._dispatcher.send("task-received", uuid=work.turn_id, name=RUN_TURN, retries=retries, **about)
        self._dispatcher.send("task-started", uuid=work.turn_id)

    def ended(self, session_id: SessionId, turn_id: TurnId, status: TurnStatus) -> None:
        """Report a turn's end, possibly after an attempt on a worker that died."""
        kind, about = _ENDS.get(status, ("failed", {"exception": status.value}))
        named = {"name": RUN_TURN, "args": f"[{session_id!r}]"}  # for consumers that missed the start
        self._dispatcher.send(f"task-{kind}", uuid=turn_id, runtime=self._took_s(turn_id), **named, **about)

    def left(self, turn_id: TurnId, *, again: bool) -> None:
        """Report a retry if this worker ran an attempt and `again` is True."""
        if self._took_s(turn_id) is not None and again:
            self._dispatcher.send("task-retried", uuid=turn_id, exception=HIDDEN)

    def _took_s(self, turn_id: TurnId) -> float | None:
        """Return the seconds since this worker's attempt started, or None if this worker has not started one."""
        began = self._began.pop(turn_id, None)
        return None if began is None else time.monotonic() - began

    def show_ended(self, task_id: str, ending: str, runtime_s: float) -> None:
        """Report a task that ended with its turn. `ending`: ``succeeded``, ``failed`` or ``revoked``."""
        result = {"result": HIDDEN, "runtime": runtime_s}
        about = {"succeeded": result, "failed": {"exception": HIDDEN}}.get(ending, {})
        self._dispatcher.send(f"task-{ending}", uuid=task_id, **about)

    async def flush_in_thread(self) -> None:
        if self._dispatcher._group_buffer["task"]:  # noqa: SLF001
            await run_in_thread(self.flush)

    def flush(self) -> None:
        """Send buffered events. Drop them if the broker is unavailable."""
        try:
            self._dispatcher.flush()
        except (OSError, *self._connection.connection_errors):
            with contextlib.suppress(KeyError):
                self._dispatcher._group_buffer["task"].clear()  # noqa: SLF001

    def close(self) -> None:
        self.flush()
        self._connection.release()
