from dataclasses import dataclass
from datetime import datetime

from orchestrator.types import JsonObject, TurnId, UserId


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """A filter for turns. Criteria that are None match all turns.

    Args:
        words: words that must all occur in the message or the reply.
        failed: whether the turn ended with an error or an apology.
        not_understood: whether NLU failed to interpret the message.
        rated_down: whether the turn has a thumbs-down.
        over_budget: whether a budget prevented a model call in the turn.
        min_ms: minimum run time, in milliseconds.
        min_cost_micros: minimum cost of the model calls, in millionths of a US dollar.
    """

    words: tuple[str, ...] = ()
    failed: bool | None = None
    not_understood: bool | None = None
    rated_down: bool | None = None
    over_budget: bool | None = None
    min_ms: float | None = None
    min_cost_micros: int | None = None
    domain: str | None = None
    user_id: UserId | None = None


@dataclass(frozen=True, slots=True)
class FoundTurns:
    """A page of turns, newest first. `next`: the `before` argument for the next page, or None on the last page."""

    turns: list[JsonObject]
    next: TurnId | None


def turn_id_at(at: datetime) -> TurnId:
    """Return the lowest turn ID that a turn accepted at this time can have."""
    return TurnId(f"turn_{int(at.timestamp() * 1000):012x}")
