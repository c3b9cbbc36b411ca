"""Errors of the HTTP API, one class per `code`.

ParleyError
├── InvalidInput            malformed input; `field` names the member
│   └── InputTooLarge
├── NotFound                no such session, turn, approval, run or domain
├── Refused                 valid, but not possible in the current state
│   ├── SessionBusy         a turn is running and `if_busy` is `reject`
│   ├── SessionClosed
│   └── InboxFull           too many queued turns; try again later
├── Unauthenticated         missing or invalid credentials
├── Forbidden               valid credentials without permission
├── TooManyRequests         rate limit reached; try again later
└── Unavailable             the gateway, or a store behind it, does not respond
"""

from typing import ClassVar


class ParleyError(Exception):
    """The base class of all errors. `code`: a stable identifier of the error class."""

    code: ClassVar[str] = "internal_error"


class InvalidInput(ParleyError):
    """Malformed input.

    Args:
        message: the problem and its fix.
        field: dotted name of the invalid field.
    """

    code = "invalid_input"

    def __init__(self, message: str, *, field: str) -> None:
        super().__init__(message)
        self.field = field


class InputTooLarge(InvalidInput):
    """The request is larger than allowed."""

    code = "input_too_large"


class NotFound(ParleyError):
    """The object does not exist, or belongs to another tenant."""

    code = "not_found"

    def __init__(self, kind: str, identifier: str) -> None:
        super().__init__(f"{kind[0].upper()}{kind[1:]} {identifier!r} not found.")
        self.kind, self.identifier = kind, identifier


class Refused(ParleyError):
    """The request conflicts with the current state."""

    code = "refused"


class SessionBusy(Refused):
    code = "session_busy"


class SessionClosed(Refused):
    """The session accepts no further turns."""

    code = "session_closed"


class InboxFull(Refused):
    """The session has too many queued turns. `retry_after_s`: whole seconds to wait before trying again."""

    code = "inbox_full"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unauthenticated(ParleyError):
    """Missing or invalid credentials. The message never reveals which part was wrong."""

    code = "unauthenticated"


class Forbidden(ParleyError):
    """Valid credentials without permission for this request."""

    code = "forbidden"


class TooManyRequests(ParleyError):
    """Rate limit reached. `retry_after_s`: whole seconds to wait before trying again."""

    code = "too_many_requests"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unavailable(ParleyError):
    """The gateway, a store, the broker or a model endpoint does not respond."""

    code = "unavailable"
