"""Searching the turns of all sessions of a tenant."""

from dataclasses import dataclass
from datetime import datetime

from orchestrator.types import JsonObject, TurnId, UserId


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """A filter for turns; None matches all.

    `words`: all occur in the message or the reply. `failed`: ended with an error or an apology.
    `not_understood`: no NLU component could interpret the message. `rated_down`: has a thumbs-down.
    `over_budget`: a budget refused a model call.
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
    """A page of turns, newest first. `next`: where the search continues, or None at its end."""

    turns: list[JsonObject]
    next: TurnId | None


def turn_id_at(at: datetime) -> TurnId:
    """Return the lowest ID that a turn accepted at this time can have."""
    return TurnId(f"turn_{int(at.timestamp() * 1000):012x}")
