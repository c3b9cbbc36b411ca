"""Search across all turns of a tenant."""

from dataclasses import dataclass
from datetime import datetime

from orchestrator.types import JsonObject, TurnId, UserId


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """A filter for turns. None matches all turns.

    Args:
        words: required words in the message or the reply.
        failed: True for turns that ended with an error or an apology.
        not_understood: True for turns that no NLU component could interpret.
        rated_down: True for turns with a thumbs-down.
        over_budget: True for turns in which a budget prevented a model call.
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
    """A page of turns, newest first. `next`: the ID to continue from, or None on the last page."""

    turns: list[JsonObject]
    next: TurnId | None


def turn_id_at(at: datetime) -> TurnId:
    """Return the lowest turn ID for turns accepted at this time."""
    return TurnId(f"turn_{int(at.timestamp() * 1000):012x}")
