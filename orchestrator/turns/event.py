"""An entry of a session's ordered event log (RT-15)."""

from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.types import JsonObject, SessionId, TurnId

TOKEN = "token"  # noqa: S105  # a piece of text
"""Part of a streamed answer: ``{"text": str, "offset": int}``; live only.

`offset`: characters of the answer before this part, which replaces everything after that position.
"""
ENDINGS = frozenset({"answer", "failed"})
"""Events that end a turn."""
LOOK = "look"
"""Not a session event: tells a live listener to check the log for more."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event.

    `number`: position in the session's log, from 1; None before the commit and for live events (tokens),
    which are never stored. `type`: accepted, started, flow_pushed, flow_popped, tool_started, tool_finished,
    token, block, approval_requested, handover_requested, approval_decided, result_awaited,
    result_arrived, result_overdue, answer, failed, run_progress, proposal_decided, plan or repaired.
    """

    session_id: SessionId
    type: str
    turn_id: TurnId | None = None
    payload: JsonObject = field(default_factory=JsonObject)
    number: int | None = None
    at: datetime | None = field(default=None, compare=False)
    """Time of writing, if it was read from the log."""
