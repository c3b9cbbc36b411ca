"""The tasks: thin shells over the worker's process. Their names and arguments are the queue contract.

All but those of outside senders are hints: one that is lost is replaced by the reconciler, one that is doubled
finds nothing to do (RT-1, IF-8, IF-9).
"""

import time
from functools import partial
from typing import Any

from celery import Celery
from celery.exceptions import Ignore

from orchestrator.ports.tasks import ADVANCE_RUN, RUN_ITEMS, RUN_SESSION, START_RUN, SUBMIT_TURN
from orchestrator.types import JsonObject, SessionId
from workers.internal.links import Link, links_after
from workers.messages.redaction import REDACTED
from workers.submission import error_result, parse_request
from workers.worker_lifecycle import WorkerLifecycle


def register_tasks(app: Celery, worker: WorkerLifecycle) -> None:
    """Add the tasks to this application, and to no other of the process."""

    @app.task(name=RUN_SESSION, acks_late=False, shared=False)
    def run_session(session_id: str) -> None:
        worker.process().run_session(SessionId(session_id))

    @app.task(name=SUBMIT_TURN, bind=True, ignore_result=False, shared=False, **REDACTED)
    def submit_turn(self: Any, **arguments: Any) -> JsonObject:
        """A message that is delivered twice is one turn: its identifier serves as the key."""
        try:
            request = parse_request({"idempotency_key": f"message:{self.request.id}", **arguments})
            answer = partial(_answer, app, worker, self.request.id, time.monotonic())
            receipt = worker.process().submit_turn(request, answer)
        except Exception as error:  # noqa: BLE001 - every ending of a submission is an answer to its sender
            return error_result(error)
        if receipt is None:
            raise Ignore  # the turn is committed, so the message goes; the answer comes when it is there
        return receipt

    @app.task(name=START_RUN, bind=True, ignore_result=False, shared=False, **REDACTED)
    def start_run(self: Any, **arguments: Any) -> JsonObject:
        """Start a flow, or all flows of a trigger; a message that is delivered twice starts once."""
        try:
            return worker.process().start_run(arguments, f"message:{self.request.id}")
        except Exception as error:  # noqa: BLE001 - every ending is an answer to the sender
            return error_result(error)

    @app.task(name=ADVANCE_RUN, bind=True, acks_late=False, shared=False)
    def advance_run(self: Any, run_id: str, flow: str, then: list[str] | None = None) -> None:
        """Carry a run out, and what follows it in a chain; only for links that are left, Celery sends a message."""
        request = self.request
        links = [Link(run_id, flow, tuple(then or ())), *links_after(request)]
        if (ended := worker.process().advance_runs(links)) > 1:
            request.chain = request.chain[: 1 - ended]  # which begins with the last one

    # A chord counts its tasks also when results are ignored.
    @app.task(name=RUN_ITEMS, acks_late=False, shared=False)
    def run_items(run_id: str, flow: str, in_chord: bool = False) -> None:
        worker.process().run_items(run_id, flow, in_chord)


def _answer(app: Celery, worker: WorkerLifecycle, task_id: str, began: float, result: JsonObject) -> None:
    """Give a sender who waited the result; for Celery the task ended when its turn was accepted."""
    backend: Any = app.backend
    backend.store_result(task_id, result, "SUCCESS")
    worker.process().show_answered(task_id, time.monotonic() - began)
