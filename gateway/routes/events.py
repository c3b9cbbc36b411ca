"""Session events as server-sent events: stored events after a given number, and live events (RT-15)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Request
from pydantic import BeforeValidator, Field
from sse_starlette import EventSourceResponse, ServerSentEvent

from gateway.auth.disclosure import event_for
from gateway.dependencies import TheAccess, TheCaller, TheSessions, TheTurns, leave_of
from gateway.schemas import JsonMap, Number, ResponseModel, Timestamp, optional
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import LISTENERS
from orchestrator.turns.access import Caller
from orchestrator.turns.event import Event as SessionEvent
from orchestrator.types import JsonObject, SessionId

router = APIRouter(prefix="/v1/sessions", tags=["events"])


class Event(ResponseModel):
    """The data of a server-sent event. `number` is null for live events, which are not stored."""

    type: str
    turn_id: str | None
    payload: JsonMap
    number: int | None
    at: Timestamp | None = optional("Time when the event was stored.")


RECONNECT_AFTER_MS = 1000
HEARTBEAT_EVERY_S = 15
SLOW_FOR_S = (
    30.0  # disconnect a client that reads nothing for this many seconds; the client can reconnect and resume
)

# An EventSource that has not received a number yet may send an empty header.
LastEventId = Annotated[
    Annotated[int, Field(ge=0, le=2**53)] | None,
    BeforeValidator(lambda value: None if isinstance(value, str) and not value.strip() else value),
    Header(alias="Last-Event-ID"),
]

_STREAM: JsonObject = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "id": {"type": "string", "description": "Number of a stored event."},
                "event": {"type": "string", "description": "The type of the event."},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": Event.model_json_schema(),
                },
            },
        },
        "example": 'id: 3\nevent: answer\ndata: {"type":"answer","turn_id":"turn_1","payload":'
        '{"reply":"What day?"},"number":3}\n\n',
    }
}

_log = get_logger(__name__)


@router.get(
    "/{session_id}/events",
    response_class=EventSourceResponse,
    response_model=None,
    responses={
        200: {
            "description": "A stream of events; each event's data is an `Event` object.",
            "content": _STREAM,
        }
    },
)
async def stream_events(
    request: Request,
    session_id: SessionId,
    sessions: TheSessions,
    turns: TheTurns,
    access: TheAccess,
    caller: TheCaller,
    after: Number = 0,
    last_event_id: LastEventId = None,
    follow: bool = True,
) -> EventSourceResponse:
    """Stream a session's events as server-sent events.

    Stored events have a number as `id`, and arrive once, in order, starting after `Last-Event-ID` or `after`.
    Live events in between (parts of a reply, and the progress of a running turn) have no `id`.

    With `follow=false`, the stream ends at the end of the log. Any stream ends when the caller's credentials
    become invalid or the gateway's maximum duration is over. An EventSource reconnects with the same ticket.
    """
    tenant = caller.tenant_id
    await sessions.store.get(tenant, session_id)
    start = after if last_event_id is None else last_event_id
    if follow:
        keep = partial(access.keep_ticket, request, session_id, caller)
        await keep()
        leave = leave_of(access, caller, turns.longest_s, keep)
        events = sessions.events.follow(tenant, session_id, after=start, leave=leave)
    else:
        events = sessions.events.read(tenant, session_id, after=start)
    return EventSourceResponse(
        _messages(caller, events),
        ping=HEARTBEAT_EVERY_S,
        ping_message_factory=lambda: ServerSentEvent(comment="still here", sep="\n"),
        send_timeout=SLOW_FOR_S,
        sep="\n",
    )


async def _messages(
    caller: Caller, events: AsyncGenerator[SessionEvent]
) -> AsyncGenerator[ServerSentEvent | bytes]:
    yield ServerSentEvent(comment="listening", retry=RECONNECT_AFTER_MS, sep="\n")
    async with aclosing(events):
        try:
            with LISTENERS.labels("stream").track_inprogress():
                async for event in events:
                    yield _message(event_for(caller, event))
        except (
            Unavailable
        ) as error:  # the client reconnects, and resumes after the last number that it received
            _log.warning("An event stream was closed.", error=error)


def _message(event: SessionEvent) -> bytes:
    body = Event.model_validate(event).model_dump_json().encode()
    lines = [b"event: " + event.type.encode(), b"data: " + body]
    if event.number is not None:
        lines.insert(0, b"id: %d" % event.number)
    return b"\n".join(lines) + b"\n\n"
