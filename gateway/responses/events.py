"""Responses about outside events, reminders and deferred tool calls."""

from gateway.responses.common import JsonMap, ResponseModel, Timestamp
from orchestrator.turns.scheduled import EventStatus


class ScheduledEvent(ResponseModel):
    event_id: str
    session_id: str
    name: str
    payload: JsonMap
    key: str
    not_before: Timestamp
    status: EventStatus
    turn_id: str | None


class AnsweredCall(ResponseModel):
    """A deferred tool call with a result. `turn_id`: the turn that continues with the result."""

    reference: str
    session_id: str
    turn_id: str | None
