"""Journal steps: recorded model and tool calls, which later attempts don't repeat (RT-8)."""

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.types import Json


class StepStatus(StrEnum):
    STARTED = "started"
    """Recorded before the call. Without a later record, the outcome is unknown."""
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """A model or tool call in the journal.

    `key`: the same in all attempts of the turn, for example ``tool:flight_book:1``.
    """

    key: str
    kind: str
    status: StepStatus
    request_hash: str
    result: Json = None
    duration_ms: float | None = field(default=None, compare=False)
    """Duration of the call in milliseconds, or None if it has not ended or was made by an earlier attempt."""


@dataclass(frozen=True, slots=True)
class NotBegun:
    """A call that was not made, because the turn had been stopped (RT-25)."""


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """A non-idempotent call that an earlier attempt started, with an unknown outcome (RT-9).

    The call is not repeated. The tool's status query or the user must clarify the outcome.
    """

    key: str
    idempotency_key: str
