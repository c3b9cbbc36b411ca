"""What people think of an answer: thumbs, words, and what would have been right. Records only."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.types import JsonObject, SessionId, TurnId


class Rating(StrEnum):
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Feedback:
    """`correction`: what would have been right, any of ``reply``, ``dact`` and ``slots``. `author`: who says so."""

    rating: Rating | None = None
    comment: str | None = None
    correction: JsonObject = field(default_factory=JsonObject)
    author: str | None = None


@dataclass(frozen=True, slots=True)
class FeedbackRecord:
    """Feedback as it is stored."""

    feedback_id: str
    session_id: SessionId
    turn_id: TurnId
    feedback: Feedback
    at: datetime
