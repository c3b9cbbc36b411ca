"""A journaled step: a model or tool call whose result must not be produced twice (RT-8)."""

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.types import Json


class StepStatus(StrEnum):
    STARTED = "started"
    """Recorded before the call; the outcome is unknown without a later record."""
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """A step. `key`: stable across attempts of the turn, for example ``tool:flight_book:1``."""

    key: str
    kind: str
    status: StepStatus
    request_hash: str
    result: Json = None
    duration_ms: float | None = field(default=None, compare=False)
    """Duration of a call made by this attempt, or None until it ends."""


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The turn was stopped before this call, which was therefore not made (RT-25)."""


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """An earlier attempt started a non-idempotent call whose outcome is unknown (RT-9).

    It is not repeated: consult the tool's status query, or the user, and settle it.
    """

    key: str
    idempotency_key: str
