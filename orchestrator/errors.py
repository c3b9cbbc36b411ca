"""All errors of the runtime. `parley_client.errors` defines the errors of the HTTP API.

    ParleyError
    ├── InvalidInput            malformed or oversized input; names the field
    ├── NotFound                no such session, turn, approval, run or domain
    ├── Refused                 valid, but not possible in the current state
    │   ├── SessionBusy         a turn is running and `if_busy` is `reject`
    │   ├── SessionClosed
    │   ├── InboxFull           too many queued turns; try again later
    │   └── FolderInUse         another process uses this data folder
    ├── Unauthenticated         missing or invalid credentials
    ├── Forbidden               valid credentials without permission
    ├── TooManyRequests         rate limit reached; try again later
    ├── ConfigurationError      invalid domain or settings; lists all problems
    ├── Unavailable             a store, the broker or a model endpoint does not respond
    │   ├── ProcessFailed       a child process exited or never became ready
    │   └── ModelUnavailable    no model answered; the local classifier takes over
    │       ├── ModelNotConfigured  no endpoint is configured
    │       ├── ModelTimedOut       no answer within the time limit
    │       ├── ModelFailed         server error or broken connection; a retry may help
    │       │   └── ModelOverloaded     the provider has no capacity at the moment
    │       ├── RateLimited         too many requests; has the endpoint's retry delay
    │       ├── ModelRejected       the endpoint refused this request
    │       │   ├── ModelContextExceeded  longer than the model's context window
    │       │   ├── ModelFiltered         stopped by the provider's content filter
    │       │   └── ModelRefused          the model declined to answer
    │       ├── ModelNotAllowed     invalid key or missing permission
    │       │   ├── ModelQuotaExceeded    the account has no quota or credit left
    │       │   └── ModelUnknown          no such model, or a wrong URL
    │       └── CircuitOpen         too many recent failures; nothing was sent
    ├── ModelOutputInvalid      unusable model output, even after a repair attempt
    │   └── ModelCutOff         the answer reached its token limit
    ├── BudgetExceeded          token or cost budget of a call, turn, session, user, tenant or day exceeded
    ├── LaneLost                another worker holds the lease; this work is discarded
    ├── TurnCancelled
    │   └── Overtaken           a later message changed or canceled the task
    ├── DeadlineExceeded
    ├── StepMismatch            a retried turn diverged from its journal
    ├── StepFailed              a journaled step failed in an earlier attempt
    ├── ToolFailure             a tool failed; has a category
    ├── DirectiveError          a background flow returned an invalid directive
    ├── IllegalTransition       invalid lifecycle transition
    └── SchemaTooNew            stored data was written by a newer release

Every class has a stable `code`. Messages can be shown to users. Adapters translate errors of libraries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from orchestrator.saying import Told
from parley_client.errors import Forbidden as Forbidden
from parley_client.errors import InboxFull as InboxFull
from parley_client.errors import InputTooLarge as InputTooLarge
from parley_client.errors import InvalidInput as InvalidInput
from parley_client.errors import NotFound as NotFound
from parley_client.errors import ParleyError as ParleyError
from parley_client.errors import Refused as Refused
from parley_client.errors import SessionBusy as SessionBusy
from parley_client.errors import SessionClosed as SessionClosed
from parley_client.errors import TooManyRequests as TooManyRequests
from parley_client.errors import Unauthenticated as Unauthenticated
from parley_client.errors import Unavailable as Unavailable


class FolderInUse(Refused):
    code = "folder_in_use"


@dataclass(frozen=True, slots=True)
class Problem:
    """A configuration problem and its location, for example ``ontology.yaml: flows.book_flight.dax``."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class ConfigurationError(ParleyError):
    """Invalid configuration. `problems`: all problems found."""

    code = "configuration_error"

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class ProcessFailed(Unavailable):
    code = "process_failed"


class LaneLost(ParleyError):
    """The lease or epoch is no longer current. The work is discarded."""

    code = "lane_lost"


class TurnCancelled(ParleyError):
    """The turn was canceled."""

    code = "turn_cancelled"


class Overtaken(TurnCancelled):
    """A newer message changes or cancels the task. `takes_back`: True if the message withdraws the whole turn."""

    code = "overtaken"

    def __init__(self, message: str, *, takes_back: bool = False) -> None:
        super().__init__(message)
        self.takes_back = takes_back


class DeadlineExceeded(ParleyError):
    """The turn took longer than allowed."""

    code = "deadline_exceeded"


ENDED_FROM_OUTSIDE = (TurnCancelled, LaneLost, DeadlineExceeded)
"""The errors of a turn that was ended from outside. They pass through all steps and calls."""


class GaveUp(ParleyError):
    """The turn has no attempts left."""

    code = "gave_up"


class StepMismatch(ParleyError):
    code = "step_mismatch"


class StepFailed(ParleyError):
    """A journaled step failed in an earlier attempt. `cause`: the code of that failure."""

    code = "step_failed"

    def __init__(self, message: str, *, cause: str) -> None:
        super().__init__(message)
        self.cause = cause


class FailureCategory(StrEnum):
    """Error categories for tool results (PX-8)."""

    VALIDATION_ERROR = "validation_error"
    AUTH_ERROR = "auth_error"
    NOT_FOUND = "not_found"
    RATE_LIMIT = "rate_limit"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"


class ToolFailure(ParleyError):
    """A tool could not do what was requested. The user sees the message.

    Args:
        category: a FailureCategory, or its value.
        message: the problem and what the user can do, in the domain's language.
        undecided: True if the side effect may have happened.
        retry_after_s: the tool's retry delay, in seconds.
        alternative: inputs that would make the call succeed, offered to the user if the call requires a
            confirmation.
    """

    code = "tool_failure"

    def __init__(
        self,
        category: FailureCategory | str,
        message: Told,
        *,
        undecided: bool = False,
        retry_after_s: float | None = None,
        alternative: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(str(message))
        self.told = message
        self.alternative = dict(alternative or {})
        self.category = FailureCategory(category)
        self.undecided = undecided
        self.retry_after_s = retry_after_s


class DirectiveError(ParleyError):
    """A background flow's directive is invalid or not permitted at this stage (IF-4, IF-7)."""

    code = "directive_not_allowed"

    def __init__(self, message: str, *, stage: str, directive: str) -> None:
        super().__init__(message)
        self.stage = stage
        self.directive = directive


class IllegalTransition(ParleyError):
    code = "illegal_transition"


@dataclass(frozen=True, slots=True)
class EndpointError:
    """An endpoint's description of a failed request, for operators.

    Args:
        status: the HTTP status, or None if there was no response.
        code: the endpoint's error code, if known.
        field: the rejected part of the request, if known.
    """

    endpoint: str
    status: int | None = None
    code: str | None = None
    field: str | None = None


class ModelUnavailable(Unavailable):
    """No model answered. Parley continues with the local classifier.

    `final`: True if retries are useless until the request, the account or the configuration changes.
    `retry_after_s`: the endpoint's retry delay in seconds, or None if unknown.
    """

    code = "model_unavailable"
    final: bool = False

    def __init__(
        self, message: str, *, said: EndpointError | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.said, self.retry_after_s = said, retry_after_s


class ModelNotConfigured(ModelUnavailable):
    code = "model_not_configured"
    final = True


class ModelTimedOut(ModelUnavailable):
    code = "model_timed_out"


class ModelFailed(ModelUnavailable):
    """A server error, a broken connection or an unreadable response."""

    code = "model_failed"


class ModelOverloaded(ModelFailed):
    code = "model_overloaded"


class RateLimited(ModelUnavailable):
    code = "model_rate_limited"


class ModelRejected(ModelUnavailable):
    """The endpoint rejected this request, but may accept other requests."""

    code = "model_rejected"
    final = True


class ModelContextExceeded(ModelRejected):
    code = "model_context_exceeded"


class ModelFiltered(ModelRejected):
    """The provider's content filter stopped the request or the answer."""

    code = "model_filtered"


class ModelRefused(ModelRejected):
    code = "model_refused"


class ModelNotAllowed(ModelUnavailable):
    """The key is invalid or lacks permission. All requests fail until an operator fixes the problem."""

    code = "model_not_allowed"
    final = True


class ModelQuotaExceeded(ModelNotAllowed):
    code = "model_quota_exceeded"


class ModelUnknown(ModelNotAllowed):
    """The endpoint doesn't have this model, or the URL is wrong."""

    code = "model_unknown"


class CircuitOpen(ModelUnavailable):
    """Nothing was sent, because the endpoint failed too many times. `retry_after_s`: seconds until the next probe."""

    code = "model_circuit_open"

    def __init__(
        self, message: str, *, retry_after_s: float, because: ModelUnavailable | None = None
    ) -> None:
        super().__init__(
            message, said=because.said if because is not None else None, retry_after_s=retry_after_s
        )
        self.final = because is not None and because.final


class ModelOutputInvalid(ParleyError):
    """The model's answer is unusable, even after one repair. `reason`: the cause."""

    code = "model_output_invalid"
    final: bool = False

    def __init__(self, prompt_id: str, reason: str) -> None:
        super().__init__(f"The model's response to {prompt_id} cannot be used: {reason}")
        self.prompt_id, self.reason = prompt_id, reason


class ModelCutOff(ModelOutputInvalid):
    """The answer reached its token limit, even after the limit was raised."""

    code = "model_cut_off"
    final = True


class BudgetExceeded(ParleyError):
    """Nothing was sent, because the call would exceed a limit. `scope`: the limit's field in `BudgetLimits`.

    `final`: True if later turns will reach the same limit.
    """

    code = "budget_exceeded"

    def __init__(self, scope: str, unit: str, *, limit: int, wanted: int) -> None:
        named = scope.replace("_", " and ")
        super().__init__(
            f"The call would exceed the model budget per {named}: {wanted} {unit}; the limit is {limit}."
        )
        self.scope, self.unit = scope, unit
        self.final = scope not in {"turn", "tenant_minute"}
        self.limit, self.wanted = limit, wanted


class SchemaTooNew(ParleyError):
    """The stored data was written by a later release, and this release cannot read it."""

    code = "schema_too_new"

    def __init__(self, found: int, known: int) -> None:
        what = f"The stored state has version {found}, but this release reads only up to {known}"
        super().__init__(f"{what}; use the release that wrote it, or a later one.")
        self.found, self.known = found, known
