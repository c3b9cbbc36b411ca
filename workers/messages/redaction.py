"""Keep contents of tasks that outsiders send out of Flower and the log: identifiers only (RT-22).

Senders put a text of their arguments into a message's header, and Celery passes it on, as it does the
text of the result. Both are replaced here, whoever sent the message. What is no task of ours is dropped, and
logged without its body.
"""

import re
from typing import Any, Final

from celery import signals
from celery.exceptions import NotRegistered
from celery.worker.consumer import Consumer
from celery.worker.request import Request
from kombu.exceptions import ContentDisallowed, DecodeError

from orchestrator.telemetry import get_logger
from workers.messages.envelopes import MALFORMED
from workers.messages.refused import note_refused

_log = get_logger(__name__)

HIDDEN: Final = "<not shown>"
IDENTIFIERS: Final = ("session_id", "flow", "trigger", "sequence")
MAX_LENGTH: Final = 128
_IDENTIFIER: Final = re.compile(r"[!-~]{1,255}")
_NAME: Final = re.compile(r"[\w.+/-]{1,128}")


def redact_arguments(arguments: dict[str, Any]) -> str:
    """Write the identifiers among the arguments as people read them in Flower."""
    kept = {name: arguments[name] for name in IDENTIFIERS if arguments.get(name) is not None}
    return "{" + ", ".join(f"{name}: {str(value)[:MAX_LENGTH]}" for name, value in kept.items()) + "}"


class RedactedRequest(Request):
    """Celery's record of a received task, with nothing of what the user said in it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        kwargs = self.kwargs
        self._argsrepr = "()"
        self._kwargsrepr = redact_arguments(kwargs) if isinstance(kwargs, dict) else HIDDEN

    def send_event(self, type: str, **fields: Any) -> None:  # noqa: A002  # the name that Celery gives it
        """Send a task event, its result hidden."""
        if "result" in fields:
            fields["result"] = HIDDEN
        super().send_event(type, **fields)


REDACTED: Final = {"Request": "workers.messages.redaction:RedactedRequest", "resultrepr_maxsize": 0}
"""Options of a task whose arguments or result carry contents."""


class RedactingConsumer(Consumer):
    """Celery's consumer, which drops what it cannot read, without logging what is in it."""

    def create_task_handler(self, *arguments: Any, **options: Any) -> Any:
        """Celery ends the worker, and then the next one, over a message whose parts are not what they should be."""
        receive = super().create_task_handler(*arguments, **options)

        def on_task_received(message: Any) -> None:
            try:
                _require_identifier(message)
                receive(message)
            except MALFORMED as error:
                if message.acknowledged:  # it will not come again; to end over it would help nobody
                    _log_dropped("A message that was taken was dropped.", message, error)
                else:
                    self.on_invalid_task(None, message, error)

        return on_task_received

    def on_decode_error(self, message: Any, exc: Exception) -> None:
        """The body is not what its type says."""
        _log_dropped("A message that cannot be read was dropped.", message, exc)
        message.ack()

    def on_unknown_message(self, body: Any, message: Any) -> None:
        """It names no task at all."""
        del body
        _log_dropped("A message that is no task was dropped.", message)
        self._reject(message, None)

    def on_unknown_task(self, body: Any, message: Any, exc: Exception) -> None:
        """Whoever waits for its result gets this error."""
        del body
        _log_dropped("A message for a task that does not exist was dropped.", message)
        self._reject(message, exc)
        headers = message.headers or {}  # an old form of message has none, and nobody is told
        identifier, name = headers.get("id"), str(headers.get("task"))[:MAX_LENGTH]
        if isinstance(identifier, str):
            app: Any = self.app
            app.backend.mark_as_failure(identifier, NotRegistered(name))

    def on_invalid_task(self, body: Any, message: Any, exc: Exception) -> None:
        """It has a disallowed content type (pickle), or its parts are not those of a task."""
        del body
        _log_dropped("A message with a disallowed content type was dropped.", message, exc)
        self._reject(message, exc)

    def _reject(self, message: Any, error: Exception | None) -> None:
        message.reject_log_error(_log, self.connection_errors)
        signals.task_rejected.send(sender=self, message=message, exc=error)


def _require_identifier(message: Any) -> None:
    """Celery writes a task's identifier into the log as it is. Raises ValueError for what is none."""
    facts = message.headers or {}
    if "task" not in facts:  # an old form of message has them in its body
        try:
            facts = message.payload
        except (DecodeError, ContentDisallowed):
            return  # Celery finds out as well, and drops it
    identifier = facts.get("id") if isinstance(facts, dict) else None
    if identifier is not None and not (isinstance(identifier, str) and _IDENTIFIER.fullmatch(identifier)):
        raise ValueError("no identifier")


def _log_dropped(event: str, message: Any, error: Exception | None = None) -> None:
    headers = message.headers if isinstance(message.headers, dict) else {}
    info = message.delivery_info or {}
    note_refused(
        event,
        _name(info.get("routing_key")),
        "task" if error is None else type(error).__name__,
        task=_name(headers.get("task")),
        content_type=_name(message.content_type),
        bytes=len(message.body or b""),
    )


def _name(given: Any) -> str | None:
    """A name as senders give it, if it is one."""
    return given if isinstance(given, str) and _NAME.fullmatch(given) else None
