from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.types import JsonObject, SessionId, TurnId


class Rating(StrEnum):
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback on an answer.

    `correction`: the expected ``reply``, ``dact`` or ``slots``. `author`: the name of the user or operator.
    """

    rating: Rating | None = None
    comment: str | None = None
    correction: JsonObject = field(default_factory=JsonObject)
    author: str | None = None


@dataclass(frozen=True, slots=True)
class FeedbackRecord:
    feedback_id: str
    session_id: SessionId
    turn_id: TurnId
    feedback: Feedback
    at: datetime
