"""Session content for background runs, collected for flows because they can't read sessions (IF-17)."""

from dataclasses import dataclass
from typing import Final

from orchestrator.types import Epoch, Json, JsonObject, UserId

CONVERSATION: Final = "conversation"
"""The material name of the `Conversation`, which is None before the first turn."""
HABITS: Final = "habits"
"""The material name of the user's `SlotUse` records, by task and slot, most frequent value first."""
HISTORY: Final = "history"
"""The material name of the `History`."""
MATERIALS: Final = frozenset({CONVERSATION, HABITS, HISTORY})


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
    """The number of times that a user gave a value for a slot in completed tasks."""

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
