"""The Celery tasks, as thin wrappers around the worker process. Their names and arguments are public API.

Tasks that external senders don't use are hints: the reconciler replaces lost tasks, and duplicates have no
effect (RT-1, IF-8, IF-9).
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from celery import Celery, chord, group
from celery.exceptions import Ignore, TaskPredicate
from celery.worker import state

from orchestrator.ports.tasks import (
    CANCEL_EVENT,
    CANCEL_TURN,
    DECIDE_APPROVAL,
    RUN_SESSION,
    SEND_EVENT,
    SHOW_TURN,
    START_RUN,
    SUBMISSIONS,
    SUBMIT_TURN,
)
from orchestrator.types import JsonObject, SessionId
from workers.answers import describe_task, name_callbacks
from workers.buffering import until_available
from workers.messages.redaction import REDACTED
from workers.messages.refusal import TaskRefused
from workers.process import WorkerProcess
from workers.run_tasks import register_run_tasks
from workers.submission import BrokerTask, Submissions, follow_up_id, name_arguments
from workers.worker_lifecycle import WorkerLifecycle

OF_SENDERS: Final = {
    "bind": True,
    "ignore_result": False,
    "shared": False,
    "throws": (TaskRefused,),  # log rejections in one line, without a traceback
    **REDACTED,
}
"""Celery options for the tasks that external senders use."""

Act = Callable[[WorkerProcess, dict[str, Any], BrokerTask], JsonObject | None]
Positional = Callable[[Mapping[str, Any]], tuple[str, ...]]
"""A function that returns the names that positional arguments can fill, given the keyword arguments."""


def _of(act: Callable[[Submissions, JsonObject, BrokerTask], Coroutine[Any, Any, JsonObject | None]]) -> Act:
    """Turn a method of `Submissions` into an `Act` that runs the method on the process's event loop."""
    return lambda process, arguments, task: process.submit_task(lambda door: act(door, arguments, task))


def _submitting(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    # In a chain, the previous task's result comes first and is either the text or unused.
    return ("session_id",) if kwargs.get("action") is not None else ("session_id", "text")


def _referring(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    return () if "idempotency_key" in kwargs else ("turn_id",)


def _starting(kwargs: Mapping[str, Any]) -> tuple[str, ...]:
    return ("trigger",) if "trigger" in kwargs else ("flow", "inputs")


SENDERS_TASKS: Final[tuple[tuple[str, Act, Positional], ...]] = (
    (SUBMIT_TURN, _of(Submissions.submit), _submitting),
    (CANCEL_TURN, _of(Submissions.cancel), _referring),
    (SHOW_TURN, _of(Submissions.show), _referring),
    (DECIDE_APPROVAL, _of(Submissions.decide), lambda _: ("approval_id", "decision", "reason")),
    (SEND_EVENT, _of(Submissions.send_event), lambda _: ("session_id", "name", "payload")),
    (CANCEL_EVENT, _of(Submissions.cancel_event), lambda _: ("session_id", "event_id")),
    (START_RUN, WorkerProcess.start_run, _starting),
)
"""The tasks that external senders use: name, function, and the `Positional` that names positional arguments."""


def register_tasks(app: Celery, worker: WorkerLifecycle) -> None:
    """Register the tasks with this application only, not with other applications in the process."""
    untyped: Any = app
    untyped.on_after_finalize.connect(lambda sender, **_: _replace_chunks(sender), weak=False)
    register_run_tasks(app, worker)

    @app.task(name=RUN_SESSION, acks_late=False, ignore_result=True, shared=False)
    def run_session(session_id: str) -> None:
        worker.process().run_session(SessionId(session_id))

    for name, act, positional in SENDERS_TASKS:
        _register(app, worker, name, act, positional)


def _register(app: Celery, worker: WorkerLifecycle, name: str, act: Act, positional: Positional) -> None:
    @app.task(name=name, **OF_SENDERS)
    def run(self: Any, *args: Any, **kwargs: Any) -> JsonObject:
        return _answer(worker, self.request, positional(kwargs), args, kwargs, act)


def _replace_chunks(app: Celery) -> None:
    """Replace Celery's `chunks` and `map` tasks.

    Celery runs many calls in one task. Here, each call is a separate task, which can wait for its turn and is
    not repeated on redelivery. Arguments and results are hidden.
    """
    untyped: Any = app
    for name in ("celery.starmap", "celery.map", "celery.accumulate"):
        untyped.tasks.unregister(name)

    def spread(self: Any, task: Any, several: Sequence[Sequence[Any]]) -> Any:
        called = untyped.signature(task)
        calls = [
            called.clone(args=tuple(args)).set(task_id=follow_up_id(self.request.id, f"chunk:{place}"))
            for place, args in enumerate(several)
        ]
        if not calls:
            return []
        joined: Any = chord([], untyped.tasks["celery.accumulate"].s(index=0), app=app)
        # With a fixed group ID, a redelivery joins the calls that the first delivery sent.
        header = group([call.set(queue=SUBMISSIONS) for call in calls], app=app)
        joined.tasks = header.set(task_id=follow_up_id(self.request.id, "chunks"))
        return self.replace(joined)

    @app.task(name="celery.starmap", bind=True, ignore_result=False, shared=False, lazy=False, **REDACTED)
    def starmap(self: Any, task: Any, it: Sequence[Sequence[Any]]) -> Any:
        return spread(self, task, it)

    @app.task(name="celery.map", bind=True, ignore_result=False, shared=False, lazy=False, **REDACTED)
    def map_(self: Any, task: Any, it: Sequence[Any]) -> Any:
        return spread(self, task, [(item,) for item in it])

    @app.task(name="celery.accumulate", ignore_result=False, shared=False, lazy=False, **REDACTED)
    def accumulate(*args: Any, index: int | None = None) -> Any:
        """Return the argument at `index`, or all arguments if `index` is None."""
        return args if index is None else args[index]


def _answer(
    worker: WorkerLifecycle,
    request: Any,
    names: Sequence[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    act: Act,
) -> JsonObject:
    """Return the result of a sender's task, retrying while a store is unavailable.

    Raises TaskRefused if the task is rejected, Ignore if the task ends later with its turn, or Reject to
    requeue the message.
    """
    task = describe_task(request)
    name_callbacks(request)
    follows = request.parent_id is not None or request.root_id not in {None, request.id}
    try:
        arguments = name_arguments(names, args, kwargs, follows=follows)
        result = until_available(task.expires_at, lambda: act(worker.process(), arguments, task))
    except Exception as error:
        if isinstance(error, TaskPredicate):
            raise
        raise TaskRefused.because_of(error) from None
    if request.id in state.revoked:  # revoked while running
        worker.revoke(request.id)
    if result is None:
        raise Ignore  # Acknowledge the message: the turn and the task are committed, and end together.
    return result
