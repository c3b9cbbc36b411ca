"""Run Celery beat in a worker thread, for a single machine: ``worker --schedules``."""

from typing import Any, Final

from celery import bootsteps
from celery.beat import EmbeddedService
from click import Option

SCHEDULES: Final = Option(
    ["--schedules"], is_flag=True, help="Also start scheduled jobs, as Celery beat does."
)


class ScheduleThread(bootsteps.StartStopStep):
    """The worker step that starts beat in a thread.

    Celery's `-B` option would fork a process, which outlives a killed worker.
    """

    conditional = True

    def __init__(self, parent: Any, *, schedules: bool = False, **options: Any) -> None:
        self.enabled = schedules
        super().__init__(parent, **options)

    def create(self, parent: Any) -> Any:
        return EmbeddedService(parent.app, thread=True, scheduler_cls=parent.app.conf.beat_scheduler)
