"""Handle `revoke` even if all other remote commands are disabled (RT-30)."""

from collections.abc import Callable
from typing import Any, Final

from celery import bootsteps
from celery.worker import state
from celery.worker.consumer.tasks import Tasks
from celery.worker.pidbox import Pidbox

from orchestrator.ports.tasks import SUBMISSIONS
from orchestrator.telemetry import get_logger

LONGEST_ID: Final = 255
MOST_AT_ONCE: Final = 1000

_log = get_logger(__name__)

Revoke = Callable[[str], None]
"""A function that cancels a task's turns, given the task ID, without blocking."""


class RevocationBox(Pidbox):
    """A mailbox that accepts only `revoke` and never replies."""

    revoke: Revoke

    def __init__(self, consumer: Any) -> None:
        super().__init__(consumer)
        self.node.hostname = (
            f"revocations.{self.hostname}"  # must differ from the name of Celery's own mailbox
        )

    def on_message(self, body: Any, message: Any) -> None:
        """Revoke tasks that have not been received yet, and cancel the turns of received tasks."""
        del message
        if not isinstance(body, dict) or body.get("method") != "revoke":
            return
        arguments = body.get("arguments")
        named = arguments.get("task_id") if isinstance(arguments, dict) else None
        given = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        task_ids = [one for one in given[:MOST_AT_ONCE] if isinstance(one, str) and len(one) <= LONGEST_ID]
        state.revoked.update(task_ids)
        for task_id in task_ids:
            self.revoke(task_id)


def revocation_step(revoke: Revoke) -> type[bootsteps.StartStopStep]:
    """Create a consumer step that handles `revoke`, for workers that accept submissions."""

    class Revocations(bootsteps.StartStopStep):
        requires = (Tasks,)

        def __init__(self, parent: Any, **options: Any) -> None:
            self.box = RevocationBox(parent)
            self.box.revoke = revoke
            super().__init__(parent, **options)

        def include_if(self, parent: Any) -> bool:
            return SUBMISSIONS in parent.app.amqp.queues.consume_from

        def start(self, parent: Any) -> None:
            self.box.start(parent)

        def stop(self, parent: Any) -> None:
            self.box.stop(parent)

        def shutdown(self, parent: Any) -> None:
            self.box.shutdown(parent)

    return Revocations
