"""Celery tasks for background flows (IF-8, IF-9).

Messages are acknowledged immediately, because the reconciler resends unfinished work.
"""

from typing import Any

from celery import Celery, Task
from celery.exceptions import Ignore

from orchestrator.ports.tasks import RUN_FLOW, RUN_ITEMS
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject
from workers.internal.canvas import CANNOT_SEND
from workers.internal.outcomes import Elsewhere, Ended, InShares, Later, Outcome, Rerun, RunFailed
from workers.process import WorkerProcess
from workers.worker_lifecycle import WorkerLifecycle

_log = get_logger(__name__)


class RunTask(Task):
    """A run's Celery task, which can keep its parent when another task resends it."""

    def apply_async(self, *arguments: Any, keeps_place: bool = False, **options: Any) -> Any:
        """Send the task. `keeps_place`: True to keep the task's parent, or False to use the sending task."""
        sender: Any = self.app.current_worker_task if keeps_place else None
        if sender is None:
            return super().apply_async(*arguments, **options)
        sender.request.called_directly = True
        try:
            return super().apply_async(*arguments, **options)
        finally:
            sender.request.called_directly = False


def register_run_tasks(app: Celery, worker: WorkerLifecycle) -> None:
    def after_return(
        _task: Any, _status: str, _result: Any, _id: str, _args: Any, kwargs: Any, _info: Any
    ) -> None:
        worker.process().note_reported(kwargs["run_id"])

    @app.task(
        name=RUN_FLOW,
        base=RunTask,
        bind=True,
        acks_late=False,
        shared=False,
        ignore_result=False,
        max_retries=None,
        throws=(RunFailed,),
        after_return=after_return,
    )
    def run_flow(self: Any, run_id: str, flow: str) -> JsonObject:
        """Execute a run. The task ends after the run and its automatic reruns."""
        process = worker.process()
        return _conclude(self, process.run_flow(run_id, flow, self.request), flow, process)

    @app.task(name=RUN_ITEMS, bind=True, acks_late=False, shared=False, ignore_result=True, max_retries=None)
    def run_items(self: Any, run_id: str, flow: str) -> None:
        """Execute shares of a run's items.

        The task counts as part of its chord, although its result is not stored.
        """
        later = worker.process().run_items(run_id, flow, self.request)
        if later is not None:
            raise self.retry(countdown=later.after_s)


def _conclude(task: Any, outcome: Outcome, flow: str, process: WorkerProcess) -> JsonObject:
    """Return the task's result, or raise the exception with which Celery fails, replaces, retries or ignores it."""
    match outcome:
        case Ended(run_id, status, error):
            if error is not None:
                raise RunFailed(error, run_id)
            return {"run_id": run_id, "status": status.value}
        case InShares(run_id, urgency, holders):
            _replace(task, process.run_canvas().shares(task.request, run_id, flow, urgency, holders))
        case Rerun(hint):
            _replace(task, process.run_canvas().rerun(task.request, hint))
        case Later(after_s):
            raise task.retry(countdown=after_s, keeps_place=True)
        case Elsewhere():
            pass
    raise Ignore


def _replace(task: Any, replacement: Any) -> None:
    """Replace a task. Ignore broker failures, because the reconciler resends the task."""
    try:
        task.replace(replacement)
    except CANNOT_SEND as error:
        _log.warning("Could not send a run's next task.", task=task.request.id, error=error)
