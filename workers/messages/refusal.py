"""Reject tasks with a code and a reason, but without the user's text."""

from typing import Final

from orchestrator.errors import InvalidInput, ParleyError
from orchestrator.telemetry import get_logger

_log = get_logger(__name__)

INTERNAL_ERROR: Final = "internal_error"
FOR_NOW: Final = frozenset({"inbox_full", "session_busy", "not_found"})
"""Codes of rejections after which the sender can retry. Other rejected messages become dead letters."""


class TaskRefused(Exception):  # senders see this name
    """Raised to reject a task. `args`: stable code, reason and, for invalid input, the field.

    Senders don't have this class, so Celery recreates the exception from its name and `args`.
    """

    def __init__(self, code: str, message: str, *field: str) -> None:
        super().__init__(code, message, *field)
        self.code = code

    def __repr__(self) -> str:
        """Return only the code, because Celery logs this text and a reason can quote the request."""
        return f"TaskRefused({self.code!r})"

    @classmethod
    def because_of(cls, error: Exception) -> "TaskRefused":
        """Return the rejection that corresponds to an error. Log unexpected errors and hide their details."""
        if isinstance(error, InvalidInput):
            return cls(error.code, str(error), error.field)
        if isinstance(error, ParleyError):
            return cls(error.code, str(error))
        _log.error("A task failed unexpectedly.", exc_info=error)
        return cls(INTERNAL_ERROR, "The message could not be processed because of an internal error.")
