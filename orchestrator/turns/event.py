"""Events of a session, numbered in its log or sent only to live listeners (RT-15)."""

from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.types import JsonObject, SessionId, TurnId

TOKEN = "token"  # noqa: S105  # an event type, not a secret
"""A part of a streamed answer: ``{"text": str, "offset": int}``. Sent to live listeners only.

`offset`: the number of characters before this part. The part replaces everything after that position.
"""
ENDINGS = frozenset({"answer", "failed"})
"""Types of events that end a turn."""
LOOK = "look"
"""The type of a marker that tells live listeners to read the log. The log does not contain this marker."""


@dataclass(frozen=True, slots=True)
class Event:
    """A session event.

    Args:
        type: accepted, started, flow_pushed, flow_popped, tool_started, tool_finished, token, block,
            approval_requested, handover_requested, approval_decided, result_awaited, result_arrived,
            result_overdue, answer, failed, run_progress, proposal_decided, context_gathered, plan or
            repaired.
        number: the position in the session's log, from 1, or None before the commit and for live events, which
            are not stored.
        at: the time of writing, or None if the event was not read from the log.
    """

    session_id: SessionId
    type: str
    turn_id: TurnId | None = None
    payload: JsonObject = field(default_factory=JsonObject)
    number: int | None = None
    at: datetime | None = field(default=None, compare=False)
