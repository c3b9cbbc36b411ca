"""The one family of errors.

    ParleyError
    ├── InvalidInput            malformed or oversized input; names the field
    ├── NotFound                session, turn, approval, run or domain is not there
    ├── Refused                 understood, but not now
    │   ├── SessionBusy         a turn is running and the session says `reject`
    │   ├── SessionClosed
    │   ├── InboxFull           a bound of the inbox is reached; try again later
    │   └── FolderInUse         another process works on this data folder
    ├── Unauthenticated         the caller has no credentials, or none that can be believed
    ├── Forbidden               known, and not allowed to do this
    ├── TooManyRequests         a rate limit is reached; try again later
    ├── ConfigurationError      a domain or the settings are wrong; carries every problem
    ├── Unavailable             a store, the broker or a model endpoint does not answer
    │   ├── ProcessFailed       a process that was started ended or never became ready
    │   └── ModelUnavailable    no model gave an answer; System 1 and direct mode carry on
    │       ├── ModelNotConfigured  there is no endpoint, so nothing was tried
    │       ├── ModelTimedOut       no answer within the time allowed
    │       ├── ModelFailed         server error or broken connection; a retry may help
    │       ├── RateLimited         too many requests; carries the wait that was asked for
    │       ├── ModelRejected       this request is not acceptable; other requests may be
    │       ├── ModelNotAllowed     key, permission or model name is wrong; every request fails
    │       └── CircuitOpen         the breaker saw too many failures; nothing was sent
    ├── ModelOutputInvalid      a model answered, even after repair, what cannot be used
    ├── BudgetExceeded          tokens or cost of a call, turn, session or day are used up
    ├── LaneLost                the lease or the epoch moved on; the work is discarded
    ├── TurnCancelled
    │   └── Overtaken           what was said meanwhile changes the task, or gives it up
    ├── DeadlineExceeded
    ├── StepMismatch            a repeated turn asks for something else than its journal says
    ├── StepFailed              a journaled step failed in an earlier attempt; raised again
    ├── ToolFailure             a tool could not do what it was asked; carries a category
    ├── DirectiveError          a stage of an Internal flow returned what it may not
    ├── IllegalTransition       a lifecycle change that the table does not allow
    └── SchemaTooNew            stored data of a later release

Every class has a stable `code`; its message can be shown to a user. Errors of libraries are
translated at the edge that met them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar


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
        self.kind, self.identifier = kind, identifier


class Refused(ParleyError):
    """Understood, but in conflict with the present state."""

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


class FolderInUse(Refused):
    code = "folder_in_use"


class Unauthenticated(ParleyError):
    """No credentials, or none that can be believed. The message never says which part was wrong."""

    code = "unauthenticated"


class Forbidden(ParleyError):
    """Known, and not allowed to do this."""

    code = "forbidden"


class TooManyRequests(ParleyError):
    """A rate limit is reached. `retry_after_s`: whole seconds after which a try makes sense."""

    code = "too_many_requests"

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


class ProcessFailed(Unavailable):
    code = "process_failed"


class LaneLost(ParleyError):
    """The lease was taken over or the epoch moved on; this holder's work is discarded."""

    code = "lane_lost"


class TurnCancelled(ParleyError):
    code = "turn_cancelled"


class Overtaken(TurnCancelled):
    """What was said meanwhile changes its task or gives it up. `takes_back`: it is as if it had not been said."""

    code = "overtaken"

    def __init__(self, message: str, *, takes_back: bool = False) -> None:
        super().__init__(message)
        self.takes_back = takes_back


class DeadlineExceeded(ParleyError):
    code = "deadline_exceeded"


class GaveUp(ParleyError):
    """A turn's attempts are used up."""

    code = "gave_up"


class StepMismatch(ParleyError):
    """A repeated turn asks for something else than its journal says under the same key."""

    code = "step_mismatch"


class StepFailed(ParleyError):
    """A journaled step that failed in an earlier attempt. `cause`: the code of that failure."""

    code = "step_failed"

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


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
        undecided: it may have had its effect all the same.
        retry_after_s: seconds after which the other side asked to be tried again.
        alternative: values, by input, with which it would succeed; they are offered where a yes comes before the call.
    """

    code = "tool_failure"

    def __init__(
        self,
        category: FailureCategory | str,
        message: str,
        *,
        undecided: bool = False,
        retry_after_s: float | None = None,
        alternative: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.alternative = dict(alternative or {})
        self.category = FailureCategory(category)
        self.undecided = undecided
        self.retry_after_s = retry_after_s


class DirectiveError(ParleyError):
    """A directive in a place that does not allow it, or one that cannot be read (IF-4, IF-7)."""

    code = "directive_not_allowed"

    def __init__(self, message: str, *, stage: str, directive: str) -> None:
        super().__init__(message)
        self.stage = stage
        self.directive = directive


class IllegalTransition(ParleyError):
    code = "illegal_transition"


class ModelUnavailable(Unavailable):
    """No model gave an answer. System 1 and direct mode carry on without one."""

    code = "model_unavailable"


class ModelNotConfigured(ModelUnavailable):
    code = "model_not_configured"


class ModelTimedOut(ModelUnavailable):
    code = "model_timed_out"


class ModelFailed(ModelUnavailable):
    """A server error or a broken connection. `status` is None when nothing was received."""

    code = "model_failed"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class RateLimited(ModelUnavailable):
    """Too many requests. `retry_after_s`: what the endpoint asked for, None if it did not say."""

    code = "model_rate_limited"

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelRejected(ModelUnavailable):
    """The endpoint refuses this request, for example because it is too long."""

    code = "model_rejected"


class ModelNotAllowed(ModelUnavailable):
    """Key, permission or model name is wrong: no request can succeed until that is changed."""

    code = "model_not_allowed"


class CircuitOpen(ModelUnavailable):
    """Nothing was sent: the endpoint failed too often. `retry_after_s`: until the next probe."""

    code = "model_circuit_open"

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelOutputInvalid(ParleyError):
    """The model's answer cannot be used, even after one repair. `reason` says why."""

    code = "model_output_invalid"

    def __init__(self, prompt_id: str, reason: str) -> None:
        super().__init__(f"The model's answer to {prompt_id} cannot be used: {reason}")
        self.prompt_id, self.reason = prompt_id, reason


class BudgetExceeded(ParleyError):
    """Nothing was sent: the call would go over a limit. `scope`: call, turn, session or day."""

    code = "budget_exceeded"

    def __init__(self, scope: str, unit: str, *, limit: int, wanted: int) -> None:
        super().__init__(f"The model budget of this {scope} is used up: {wanted} {unit} of {limit}.")
        self.scope, self.unit = scope, unit
        self.limit, self.wanted = limit, wanted


class SchemaTooNew(ParleyError):
    """Stored data of a later release, which this one cannot read."""

    code = "schema_too_new"

    def __init__(self, found: int, known: int) -> None:
        what = f"The stored state has version {found}, and this release reads up to {known}"
        super().__init__(f"{what}; use the release that wrote it, or a later one.")
        self.found, self.known = found, known
