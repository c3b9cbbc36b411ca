"""User feedback on an answer: a rating, a comment and a correction. Records only."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.types import JsonObject, SessionId, TurnId


class Rating(StrEnum):
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback.

    `correction`: the right result, any of ``reply``, ``dact`` and ``slots``. `author`: who gives it.
    """

    rating: Rating | None = None
    comment: str | None = None
    correction: JsonObject = field(default_factory=JsonObject)
    author: str | None = None


@dataclass(frozen=True, slots=True)
class FeedbackRecord:
    """Stored feedback."""

    feedback_id: str
    session_id: SessionId
    turn_id: TurnId
    feedback: Feedback
    at: datetime
