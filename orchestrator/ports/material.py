"""What a run is given of its session when it begins: its flow has no rights to look for itself (IF-17)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from orchestrator.types import Epoch, Json, JsonObject, SessionId, TenantId, UserId

CONVERSATION: Final = "conversation"
"""A `Conversation`; None when nothing has been said yet."""
HABITS: Final = "habits"
"""A list of `SlotUse`, of the session's user: together by task and slot, the most frequent value first."""
HISTORY: Final = "history"
"""A `History`."""
MATERIALS: Final = frozenset({CONVERSATION, HABITS, HISTORY})


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said since the last summary, as the Agent committed it.

    Args:
        epoch: the one that this belongs to.
        earlier: the last summary.
        lines: ``{role, text, turn}``, in order.
        through_turn: the last turn of these.
        labels: of the whole session (PX-3).
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
    """How often a user gave this value for this slot in tasks that were completed."""

    dact: str
    slot: str
    value: Json
    times: int


@dataclass(frozen=True, slots=True)
class History:
    """What a session holds beyond its working state, the newest first.

    Args:
        tasks: those completed, ``{dact, slots, outputs}``.
        turns: what the user said.
        rows: what was displayed.
    """

    tasks: list[JsonObject]
    turns: list[str]
    rows: list[JsonObject]


class SessionMaterial(Protocol):
    """Where material is read, with rights that flows do not have."""

    async def collect(
        self, tenant_id: TenantId, session_id: SessionId, names: tuple[str, ...]
    ) -> Mapping[str, Any]:
        """Collect what is asked for by name. Raises Unavailable."""
        ...
