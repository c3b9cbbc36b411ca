"""Show in Flower what is done without a message of its own: task events of lanes, and of links of chains.

Events are collected and sent in batches from a thread; nothing waits for them, nothing depends on them.
"""

import contextlib
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from celery import Celery

from orchestrator.adapters.threads import run_in_thread
from orchestrator.ports.tasks import RUN_SESSION, TURNS
from orchestrator.types import SessionId
from workers.messages.redaction import HIDDEN

FLUSH_EVERY_S = 0.5
KEPT_AT_MOST = 5000


@dataclass(frozen=True, slots=True)
class ShownTask:
    """How Flower shows a task. `sent_by`: the task before it in its chain."""

    task_id: str
    name: str
    root_id: str
    sent_by: str


class FlowerEvents:
    """Made when the worker sends task events (`celery worker -E`)."""

    def __init__(self, app: Celery, hostname: str) -> None:
        self._connection: Any = app.connection_for_write()
        self._dispatcher: Any = app.events.Dispatcher(
            self._connection,
            hostname=hostname,
            buffer_group={"task"},
            buffer_limit=KEPT_AT_MOST,
            buffer_while_offline=False,
        )

    def session(self, session_id: SessionId) -> AbstractContextManager[None]:
        """Show one run of a lane as a task."""
        uuid = str(uuid4())
        return self._task(uuid, name=RUN_SESSION, args=f"[{session_id!r}]", root_id=uuid, queue=TURNS)

    def link(self, task: ShownTask) -> AbstractContextManager[None]:
        """Show a link of a chain that is carried out without its message as the task that it would have been."""
        return self._task(
            task.task_id, name=task.name, args="()", root_id=task.root_id, parent_id=task.sent_by
        )

    @contextmanager
    def _task(self, uuid: str, **about: Any) -> Iterator[None]:
        began = time.monotonic()
        self._dispatcher.send("task-received", uuid=uuid, kwargs="{}", retries=0, **about)
        self._dispatcher.send("task-started", uuid=uuid)
        try:
            yield
        finally:
            self._dispatcher.send(
                "task-succeeded", uuid=uuid, result="None", runtime=time.monotonic() - began
            )

    def show_answered(self, task_id: str, runtime_s: float) -> None:
        """Show a task as done whose answer was given after it had ended."""
        self._dispatcher.send("task-succeeded", uuid=task_id, result=HIDDEN, runtime=runtime_s)

    async def flush_in_thread(self) -> None:
        """Send what was collected, beside the loop."""
        await run_in_thread(self.flush)

    def flush(self) -> None:
        """Send what was collected; what cannot be sent is dropped, since it is only for looking at."""
        try:
            self._dispatcher.flush()
        except (OSError, *self._connection.connection_errors):
            with contextlib.suppress(KeyError):
                self._dispatcher._group_buffer["task"].clear()  # noqa: SLF001

    def close(self) -> None:
        """Send the rest and close the connection."""
        self.flush()
        self._connection.release()
