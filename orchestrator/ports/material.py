"""Session content that is collected for background runs, because flows can't read sessions (IF-17)."""

from dataclasses import dataclass
from typing import Final

from orchestrator.types import Epoch, Json, JsonObject, UserId

CONVERSATION: Final = "conversation"
"""The session's `Conversation`, or None before the first turn."""
HABITS: Final = "habits"
"""The user's `SlotUse` records, grouped by flow and slot, most frequent value first."""
HISTORY: Final = "history"
MATERIALS: Final = frozenset({CONVERSATION, HABITS, HISTORY})
"""Names of the content that a background flow can request."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation since the last summary, as committed by the Agent.

    Args:
        epoch: the epoch of the session's state.
        earlier: the text of the last summary, or an empty string.
        lines: the messages as ``{role, text, turn}``, in order.
        through_turn: the number of the last turn in `lines`, or in the summary if `lines` is empty.
        labels: capability labels of the whole session (PX-3).
    """

    user_id: UserId | None
    domain: str
    epoch: Epoch
    earlier: str
    lines: list[JsonObject]
    through_turn: int
    labels: list[str]


@dataclass(frozen=True, slots=True)
class SlotUse:
    """A slot value that a user gave in completed `dact` flows. `times`: the number of these flows."""

    dact: str
    slot: str
    value: Json
    times: int


@dataclass(frozen=True, slots=True)
class History:
    """Session content beyond the working state, newest first.

    Args:
        tasks: completed tasks as ``{dact, slots, outputs}``.
        turns: the user's messages.
        rows: the table rows that were displayed to the user.
    """

    tasks: list[JsonObject]
    turns: list[str]
    rows: list[JsonObject]
