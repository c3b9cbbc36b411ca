"""The one family of errors.

    ParleyError
    ├── InvalidInput            malformed or oversized input; names the field
    ├── NotFound                session, turn, approval, run or domain is not there
    ├── Refused                 understood, but not now
    │   ├── SessionBusy         a turn is running and the session says `reject`
    │   ├── SessionClosed
    │   └── InboxFull           a bound of the inbox is reached; try again later
    ├── ConfigurationError      a domain or the settings are wrong; carries every problem
    ├── Unavailable             a store, the broker or a model endpoint does not answer
    ├── LaneLost                the lease or the epoch moved on; the work is discarded
    ├── TurnCancelled
    ├── DeadlineExceeded
    ├── ToolFailure             a tool could not do what it was asked; carries a category
    ├── IllegalTransition       a lifecycle change that the table does not allow
    └── SchemaTooNew            stored data of a later release

Every class has a stable `code`; its message can be shown to a user. Errors of libraries are
translated at the edge that met them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class ParleyError(Exception):
    """Something Parley can name. `code` is stable; the message says what to do."""

    code: ClassVar[str] = "internal_error"


class InvalidInput(ParleyError):
    """Input that cannot be accepted as it is.

    Args:
        message: what is wrong and what would be right.
        field: the offending field, dotted.
    """

    code = "invalid_input"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class InputTooLarge(InvalidInput):
    code = "input_too_large"


class NotFound(ParleyError):
    """A thing with this identifier does not exist for this tenant."""

    code = "not_found"

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"There is no {kind} {identifier!r}.")
        self.kind = kind
        self.identifier = identifier


class Refused(ParleyError):
    """Understood, but not now."""

    code = "refused"


class SessionBusy(Refused):
    code = "session_busy"


class SessionClosed(Refused):
    code = "session_closed"


class InboxFull(Refused):
    """A bound of the inbox is reached. `retry_after_s`: seconds after which a try makes sense."""

    code = "inbox_full"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake and its place, for example ``ontology.yaml: flows.book_flight.dax``."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class ConfigurationError(ParleyError):
    """Configuration that cannot be used; `problems` holds every mistake found."""

    code = "configuration_error"

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class Unavailable(ParleyError):
    """A store, the broker or a model endpoint does not answer; it may again later."""

    code = "unavailable"


class LaneLost(ParleyError):
    """The lease was taken over or the epoch moved on; this holder's work is discarded."""

    code = "lane_lost"


class TurnCancelled(ParleyError):
    code = "turn_cancelled"


class DeadlineExceeded(ParleyError):
    code = "deadline_exceeded"


class FailureCategory(StrEnum):
    """The error categories of a tool's envelope (PX-8)."""

    VALIDATION_ERROR = "validation_error"
    AUTH_ERROR = "auth_error"
    NOT_FOUND = "not_found"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"


class ToolFailure(ParleyError):
    """A tool could not do what it was asked; the message is fit for the user.

    Args:
        category: one of FailureCategory, also as text.
        message: what went wrong and what the user can do.
    """

    code = "tool_failure"

    def __init__(self, category: FailureCategory | str, message: str) -> None:
        super().__init__(message)
        self.category = FailureCategory(category)


class IllegalTransition(ParleyError):
    code = "illegal_transition"


class SchemaTooNew(ParleyError):
    """Stored data of a later release, which this one cannot read."""

    code = "schema_too_new"

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"The stored state has version {found}, and this release reads up to {known}; "
            "use the release that wrote it, or a later one."
        )
        self.found = found
        self.known = known
