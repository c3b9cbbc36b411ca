"""A session's events as server-sent events: the log from any number on, then live (RT-15)."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Header
from sse_starlette import EventSourceResponse, ServerSentEvent

from gateway.auth.disclosure import event_for
from gateway.dependencies import TheAccess, TheCaller, TheSessions, TheTurns, leave_of
from gateway.parameters import Number
from gateway.responses import sessions as responses
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import LISTENERS
from orchestrator.turns.access import Caller
from orchestrator.turns.event import Event
from orchestrator.types import JsonObject, SessionId

router = APIRouter(prefix="/v1/sessions", tags=["events"])

RECONNECT_AFTER_MS = 1000
HEARTBEAT_EVERY_S = 15
SLOW_FOR_S = 30.0  # a client that takes nothing for so long is let go; it comes back and goes on

LastEventId = Annotated[int | None, Header(alias="Last-Event-ID", ge=0, le=2**53)]

_STREAM: JsonObject = {
    "text/event-stream": {
        "schema": {
            "type": "object",
            "required": ["event", "data"],
            "properties": {
                "id": {"type": "string", "description": "The number of a durable event."},
                "event": {"type": "string", "description": "The type of the event."},
                "data": {
                    "type": "string",
                    "contentMediaType": "application/json",
                    "contentSchema": responses.Event.model_json_schema(),
                },
            },
        },
        "example": 'id: 3\nevent: answer\ndata: {"type":"answer","turn_id":"turn_1","payload":'
        '{"reply":"On which day?"},"number":3}\n\n',
    }
}

_log = get_logger(__name__)


@router.get(
    "/{session_id}/events",
    response_class=EventSourceResponse,
    response_model=None,
    responses={200: {"description": "Events; the data of each are an `Event`.", "content": _STREAM}},
)
async def stream_events(
    session_id: SessionId,
    sessions: TheSessions,
    turns: TheTurns,
    access: TheAccess,
    caller: TheCaller,
    after: Number = 0,
    last_event_id: LastEventId = None,
    follow: bool = True,
) -> EventSourceResponse:
    """Server-sent events. Durable ones carry their number as `id` and come once each, in order.

    Goes on after `Last-Event-ID`, else after `after`. Between them come live events without `id`: tokens of
    an answer that is being made, and what a turn at work does. With `follow=false` the stream ends with the
    log. It also ends when the key or token that opened it no longer holds, or when a
    stream has lasted as long as this gateway lets one: go on after the last number.
    """
    tenant = caller.tenant_id
    await sessions.store.get(tenant, session_id)
    start = after if last_event_id is None else last_event_id
    events = (
        sessions.events.follow(
            tenant, session_id, after=start, leave=leave_of(access, caller, turns.longest_s)
        )
        if follow
        else sessions.events.read(tenant, session_id, after=start)
    )
    return EventSourceResponse(
        _messages(caller, events),
        ping=HEARTBEAT_EVERY_S,
        ping_message_factory=lambda: ServerSentEvent(comment="still here", sep="\n"),
        send_timeout=SLOW_FOR_S,
        sep="\n",
    )


async def _messages(caller: Caller, events: AsyncGenerator[Event]) -> AsyncGenerator[ServerSentEvent | bytes]:
    yield ServerSentEvent(comment="listening", retry=RECONNECT_AFTER_MS, sep="\n")
    async with aclosing(events):
        try:
            with LISTENERS.labels("stream").track_inprogress():
                async for event in events:
                    yield _message(event_for(caller, event))
        except Unavailable as error:  # the client comes back, and goes on after the last number it saw
            _log.warning("A stream of events was ended.", error=error)


def _message(event: Event) -> bytes:
    body = responses.Event.model_validate(event).model_dump_json().encode()
    lines = [b"event: " + event.type.encode(), b"data: " + body]
    if event.number is not None:
        lines.insert(0, b"id: %d" % event.number)
    return b"\n".join(lines) + b"\n\n"
