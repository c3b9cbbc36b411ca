"""The turn object that people and programs see: one shape on the command line, over HTTP and in the queue."""

from __future__ import annotations

from orchestrator.turns.turn import TurnRecord
from orchestrator.types import JsonObject


def turn_object(record: TurnRecord) -> JsonObject:
    """The turn in the form of the interfaces; parts that are not known yet are empty.

    Keys: session_id, turn_id, seq, epoch, status, text, reply, flows, completed, tools, frame,
    actions, ambiguity, flags, duration_ms, and error when there is one.
    """
    body: JsonObject = {
        "session_id": record.session_id,
        "turn_id": record.turn_id,
        "seq": record.seq,
        "epoch": record.epoch,
        "status": record.status.value,
        "text": record.input.text,
        "reply": None,
        "flows": [],
        "completed": [],
        "tools": [],
        "frame": None,
        "actions": [],
        "ambiguity": None,
        "flags": {},
        "duration_ms": None,
    }
    if record.result is not None:
        body.update(record.result)
    body["status"] = record.status.value
    if record.error is not None:
        body["error"] = record.error
    return body
