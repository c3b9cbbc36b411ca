"""Keep the contents of senders' tasks out of Flower and logs, which show only IDs (RT-22).

Celery shows a representation of the arguments, which senders put in a header, and a representation of the
result. This module replaces both representations. Unknown tasks become dead letters and are logged without their body.
"""

import re
from typing import Any, ClassVar, Final

from celery import signals
from celery.exceptions import NotRegistered
from celery.worker.consumer import Consumer
from celery.worker.request import Request
from kombu.exceptions import ContentDisallowed, DecodeError

from orchestrator.telemetry import get_logger
from workers.messages.envelopes import MALFORMED
from workers.messages.refusal import FOR_NOW, TaskRefused
from workers.messages.refused import keep_dead_letter, note_refused

_log = get_logger(__name__)

HIDDEN: Final = "<not shown>"
IDENTIFIERS: Final = ("session_id", "turn_id", "approval_id", "flow", "trigger", "sequence")
MAX_LENGTH: Final = 128
DELIVERIES: Final = "x-delivery-count"
MOST_DELIVERIES: Final = 20
"""Number of deliveries after which a RabbitMQ message becomes a dead letter."""
_IDENTIFIER: Final = re.compile(r"[!-~]{1,255}")
_NAME: Final = re.compile(r"[\w.+/-]{1,128}")


def redact_arguments(arguments: dict[str, Any]) -> str:
    """Return the IDs among the arguments, each truncated to `MAX_LENGTH` characters, in Flower's format."""
    kept = {name: arguments[name] for name in IDENTIFIERS if arguments.get(name) is not None}
    return "{" + ", ".join(f"{name}: {str(value)[:MAX_LENGTH]}" for name, value in kept.items()) + "}"


class RedactedRequest(Request):
    """A received task whose displayed arguments exclude the user's text."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        kwargs = self.kwargs
        self._argsrepr = "()"
        self._kwargsrepr = redact_arguments(kwargs) if isinstance(kwargs, dict) else HIDDEN

    def send_event(self, type: str, **fields: Any) -> None:  # noqa: A002  # the name that Celery gives it
        if "result" in fields:
            fields["result"] = HIDDEN
        if "traceback" in fields:  # a traceback can quote the request
            fields["traceback"] = HIDDEN
        super().send_event(type, **fields)

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        """Fail the task as Celery does. If the task was rejected permanently, keep its message as a dead letter."""
        error = exc_info.exception
        error = getattr(error, "exc", error)  # without the pool's wrapper
        if isinstance(error, TaskRefused) and error.code not in FOR_NOW:
            kwargs = self.kwargs if isinstance(self.kwargs, dict) else {}
            about = {name: name_or_none(kwargs.get(name)) for name in ("session_id", "tenant_id")}
            keep_dead_letter(self.message, error.code, task=self.task_name, **about)
        return super().on_failure(exc_info, send_failed_event, return_ok)


REDACTED: Final = {"Request": "workers.messages.redaction:RedactedRequest", "resultrepr_maxsize": 0}
"""Celery task options for tasks whose arguments or results contain user content."""


class RedactingConsumer(Consumer):
    """A consumer that drops unreadable messages without logging their contents."""

    class Blueprint(Consumer.Blueprint):
        """Celery's steps except delayed delivery, which would declare thirty unused queues."""

        default_steps: ClassVar = [
            step for step in Consumer.Blueprint.default_steps if not step.endswith(":DelayedDelivery")
        ]

    def create_task_handler(self, *arguments: Any, **options: Any) -> Any:
        """Return a handler that survives malformed messages, which would otherwise kill every worker."""
        receive = super().create_task_handler(*arguments, **options)

        def on_task_received(message: Any) -> None:
            try:
                _require_identifier(message)
                if _is_delivered_too_often(message):
                    _log_dropped("Dropped a message that was delivered too often.", message)
                    keep_dead_letter(
                        message, "delivered_too_often", task=name_or_none(message.headers.get("task"))
                    )
                    message.ack()
                    return
                receive(message)
            except MALFORMED as error:
                if message.acknowledged:  # it won't be redelivered, so keep running
                    _log_dropped("Dropped a malformed message that was already acknowledged.", message, error)
                else:
                    self.on_invalid_task(None, message, error)

        return on_task_received

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """Drop a message whose body doesn't match its content type."""
        _log_dropped("Dropped an unreadable message.", message, exc)
        message.ack()

    def on_unknown_message(self, body: Any, message: Any) -> None:
        """Drop a message without a task name."""
        del body
        _log_dropped("Dropped a message that is not a task.", message)
        self._drop(message, None)

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Move an unknown task to the dead letters, and store the error for a waiting caller."""
        del body
        _log_dropped("Dropped a message for an unknown task.", message)
        task = name_or_none((message.headers or {}).get("task"))
        keep_dead_letter(message, "unknown_task", task=task)
        self._drop(message, exc)
        headers = message.headers or {}  # old messages have no headers, so no caller can be notified
        identifier, name = headers.get("id"), str(headers.get("task"))[:MAX_LENGTH]
        if isinstance(identifier, str):
            app: Any = self.app
            app.backend.mark_as_failure(identifier, NotRegistered(name))

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Drop a message with a disallowed content type, such as pickle, or with malformed parts."""
        del body
        _log_dropped("Dropped a malformed message, or one with a disallowed content type.", message, exc)
        self._drop(message, exc)

    def _drop(self, message: Any, error: Exception | None) -> None:
        """Acknowledge a message, because RabbitMQ would send a rejected message to the dead-letter exchange."""
        message.ack_log_error(_log, self.connection_errors)
        signals.task_rejected.send(sender=self, message=message, exc=error)


def _require_identifier(message: Any) -> None:
    """Raise ValueError for an invalid task ID, which Celery would log verbatim."""
    facts = message.headers or {}
    if "task" not in facts:  # old messages have these facts in the body
        try:
            facts = message.payload
        except (DecodeError, ContentDisallowed):
            return  # Celery detects and drops such a message
    identifier = facts.get("id") if isinstance(facts, dict) else None
    if identifier is not None and not (isinstance(identifier, str) and _IDENTIFIER.fullmatch(identifier)):
        raise ValueError("invalid task ID")


def _is_delivered_too_often(message: Any) -> bool:
    count = message.headers.get(DELIVERIES) if isinstance(message.headers, dict) else None
    return isinstance(count, int) and count >= MOST_DELIVERIES


def _log_dropped(event: str, message: Any, error: Exception | None = None) -> None:
    headers = message.headers if isinstance(message.headers, dict) else {}
    info = message.delivery_info or {}
    note_refused(
        event,
        name_or_none(info.get("routing_key")),
        "task" if error is None else type(error).__name__,
        task=name_or_none(headers.get("task")),
        content_type=name_or_none(message.content_type),
        bytes=len(message.body or b""),
    )


def name_or_none(given: Any) -> str | None:
    return given if isinstance(given, str) and _NAME.fullmatch(given) else None
