"""The turn object that people and programs see: one shape on the command line, over HTTP and in the queue."""

from __future__ import annotations

from orchestrator.turns.turn import TurnRecord, TurnStatus
from orchestrator.types import Epoch, JsonObject, SessionId, TurnId

SAFE_REPLIES: dict[TurnStatus, str] = {
    TurnStatus.QUARANTINED: "Sorry, something went wrong with that request. You can carry on or try it again.",
    TurnStatus.CANCELLED: "That request was cancelled.",
    TurnStatus.FAILED: "Sorry, that request could not be handled. Please send it again.",
    TurnStatus.REJECTED: "That request was not accepted.",
}
"""What the user reads; never the error itself."""

ACTED_REPLY = (
    "Sorry, something went wrong with that request, and a part of it may have been done. "
    "Please check that before you ask for it again."
)
"""The same where tools were called that change something."""


def unanswered(
    session_id: SessionId,
    turn_id: TurnId,
    seq: int,
    epoch: Epoch,
    status: TurnStatus,
    text: str | None,
    *,
    acted: bool = False,
) -> JsonObject:
    """The result of a turn that was cancelled, gapped away or quarantined: complete, with a safe reply.

    `acted`: tools were called that change something.
    """
    return {
        "session_id": session_id,
        "turn_id": turn_id,
        "seq": seq,
        "epoch": epoch,
        "status": status.value,
        "text": text,
        "reply": ACTED_REPLY if acted else SAFE_REPLIES[status],
        **_nothing_yet(),
        "duration_ms": 0,
    }


def turn_object(record: TurnRecord) -> JsonObject:
    """The turn in the form of the interfaces; parts that are not known yet are empty.

    Keys: session_id, turn_id, seq, epoch, status, text, reply, flows, completed, tools, frames (`frame` is the
    last of them), actions, interaction, code_snippet, properties, ambiguity, flags, duration_ms, and error when there
    is one.
    """
    body: JsonObject = {
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "seq": record.seq,
        "epoch": record.epoch,
        "status": record.status.value,
        "text": record.input.text,
        "reply": None,
        **_nothing_yet(),
        "duration_ms": None,
    }
    if record.result is not None:
        body.update(record.result)
    body["status"] = record.status.value
    body["frames"] = [*body.pop("earlier_frames", ()), *([body["frame"]] if body["frame"] else [])]
    if record.error is not None:
        body["error"] = record.error
    return body


def _nothing_yet() -> JsonObject:
    """The parts of a turn object that only an answer fills."""
    return {
        "flows": [],
        "completed": [],
        "tools": [],
        "frames": [],
        "frame": None,
        "actions": [],
        "interaction": {"kind": "none"},
        "code_snippet": None,
        "properties": {},
        "ambiguity": None,
        "flags": {},
    }
