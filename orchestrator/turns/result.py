"""The turn object for a turn that ended without the assistant's answer. Pure; no store is known here."""

from __future__ import annotations

from orchestrator.turns.turn import TurnStatus
from orchestrator.types import Epoch, JsonObject, SessionId, TurnId

SAFE_REPLIES: dict[TurnStatus, str] = {
    TurnStatus.QUARANTINED: "Sorry, something went wrong with that request. You can carry on or try it again.",
    TurnStatus.CANCELLED: "That request was cancelled.",
    TurnStatus.FAILED: "Sorry, that request could not be handled. Please send it again.",
    TurnStatus.REJECTED: "That request was not accepted.",
}
"""What the user reads; never the error itself."""


def unanswered(
    session_id: SessionId,
    turn_id: TurnId,
    seq: int,
    epoch: Epoch,
    status: TurnStatus,
    text: str | None,
) -> JsonObject:
    """The result of a turn that was cancelled, gapped away or quarantined: complete, with a safe reply."""
    return {
        "session_id": session_id,
        "turn_id": turn_id,
        "seq": seq,
        "epoch": epoch,
        "status": status.value,
        "text": text,
        "reply": SAFE_REPLIES[status],
        "flows": [],
        "completed": [],
        "tools": [],
        "frame": None,
        "actions": [],
        "ambiguity": None,
        "flags": {},
        "duration_ms": 0,
    }
