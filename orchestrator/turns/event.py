"""One entry of a session's ordered event log (RT-15)."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.types import JsonObject, SessionId, TurnId


@dataclass(frozen=True, slots=True)
class Event:
    """`number` is the place in the session's log, from 1; None until it was committed, and for
    live events (tokens), which are never stored.

    `type` is one of accepted, started, flow_pushed, flow_popped, tool_started, tool_finished, token,
    block, approval_requested, approval_decided, answer, failed, run_progress, proposal_decided.
    """

    session_id: SessionId
    type: str
    turn_id: TurnId | None = None
    payload: JsonObject = field(default_factory=JsonObject)
    number: int | None = None
