"""A journaled step of a turn: a model call or a tool call whose result must not be had twice (RT-8)."""

from dataclasses import dataclass, field
from enum import StrEnum

from orchestrator.types import Json


class StepStatus(StrEnum):
    STARTED = "started"
    """Recorded before the call; without a successor the outcome is unknown."""
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """`key` is stable across attempts of the same turn, for example ``tool:flight_book:1``."""

    key: str
    kind: str
    status: StepStatus
    request_hash: str
    result: Json = None
    duration_ms: float | None = field(default=None, compare=False)
    """How long the call took that this attempt made; None while it has not ended."""


@dataclass(frozen=True, slots=True)
class NotBegun:
    """The turn was stopped before this call, which is therefore not made (RT-25)."""


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """A non-idempotent call was begun in an earlier attempt and nobody knows how it ended (RT-9).

    It is not repeated: ask the tool's status query, or the user, and settle it. `elsewhere`: another branch of the
    conversation has done it (ST-4); unknown here is only what has become of it since.
    """

    key: str
    idempotency_key: str
    elsewhere: bool = False
