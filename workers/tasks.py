"""The tasks: thin shells over the worker's process. Their names and arguments are the queue contract."""

from __future__ import annotations

from typing import Any

from celery import Celery

from orchestrator.ports.tasks import RUN_SESSION, SUBMIT_TURN
from orchestrator.types import JsonObject, SessionId
from workers.internal.canvas import register_internal_tasks
from workers.submission import error_result, parse_request
from workers.task_redaction import DISCREET
from workers.worker_lifecycle import Host


def register_tasks(app: Celery, host: Host) -> None:
    """Add the tasks to this application, and to no other of the process."""

    @app.task(name=RUN_SESSION, acks_late=False, shared=False)  # a hint: nothing is lost with it
    def run_session(session_id: str) -> None:
        host.process().run_session(SessionId(session_id))

    register_internal_tasks(
        app,
        start=lambda arguments, key: host.process().start_run(arguments, key),
        advance=lambda run_id, flow: host.process().advance_run(run_id, flow),
        items=lambda run_id, flow, in_chord: host.process().run_items(run_id, flow, in_chord),
    )

    @app.task(name=SUBMIT_TURN, bind=True, ignore_result=False, shared=False, **DISCREET)
    def submit_turn(self: Any, **arguments: Any) -> JsonObject:
        """A message that is delivered twice is one turn: its identifier serves as the key."""
        try:
            request = parse_request({"idempotency_key": f"message:{self.request.id}", **arguments})
            return host.process().submit_turn(request)
        except Exception as error:  # noqa: BLE001 - every ending of a submission is an answer to its sender
            return error_result(error)
