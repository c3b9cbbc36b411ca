"""One entry of a session's ordered event log (RT-15)."""

from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.types import JsonObject, SessionId, TurnId

TOKEN = "token"  # noqa: S105  # a piece of text
"""A piece of an answer while it is made: ``{"text": str, "offset": int}``; live only.

`offset` counts the characters of the answer before this piece; it replaces all that came from there on.
"""
ENDINGS = frozenset({"answer", "failed"})
"""Events that a turn ends with."""
LOOK = "look"
"""No event of the session: a live listener is to look at the log, where there may be more."""


@dataclass(frozen=True, slots=True)
class Event:
    """`number` is the place in the session's log, from 1; None until it was committed, and for
    live events (tokens), which are never stored.

    `type` is one of accepted, started, flow_pushed, flow_popped, tool_started, tool_finished, token,
    block, approval_requested, handover_requested, approval_decided, answer, failed, run_progress,
    proposal_decided, plan, repaired.
    """

    session_id: SessionId
    type: str
    turn_id: TurnId | None = None
    payload: JsonObject = field(default_factory=JsonObject)
    number: int | None = None
    at: datetime | None = field(default=None, compare=False)
    """When it was written, where it was read from the log."""
