from gateway.responses.common import ResponseModel, response_of
from orchestrator.turns import scheduled


class ScheduledEvent(response_of(scheduled.ScheduledEvent, without=scheduled.ScheduledEvent.INTERNAL)):
    """An outside event or reminder. `turn_id`: the turn that handles it, or null before delivery."""


class AnsweredCall(ResponseModel):
    """A deferred tool call with a result. `turn_id`: the turn that continues with it, or null before that turn."""

    reference: str
    session_id: str
    turn_id: str | None
