"""Outside events and reminders, which start flows without a user message (RT-31)."""

from http import HTTPStatus

from fastapi import APIRouter
from pydantic import AwareDatetime

from gateway.dependencies import TheSessions, TheTenant, TheTurns
from gateway.schemas import KeyHeader, Limit, require_same_key, response_of
from orchestrator.turns import scheduled as records
from orchestrator.turns.scheduled import EventRequest, require_known_event
from orchestrator.turns.submission import Identifier, RequestBody
from orchestrator.types import SessionId

router = APIRouter(prefix="/v1/sessions/{session_id}/events", tags=["events"])


class ScheduledEvent(response_of(records.ScheduledEvent, without=records.ScheduledEvent.INTERNAL)):
    """An outside event or reminder. `turn_id`: the turn that handles it, or null before delivery."""


class NewTime(RequestBody):
    not_before: AwareDatetime


@router.post("", status_code=HTTPStatus.ACCEPTED, response_model=ScheduledEvent)
async def send_event(
    session_id: SessionId,
    body: EventRequest,
    turns: TheTurns,
    sessions: TheSessions,
    tenant: TheTenant,
    key: KeyHeader = None,
) -> records.ScheduledEvent:
    """Start the flow that handles the event, now or at `not_before`.

    A request with the same idempotency key returns the first event.
    """
    require_same_key(key, body.idempotency_key)
    session = await sessions.store.get(tenant, session_id)
    require_known_event(body.name, sessions.domains.events(session.domain))
    return await turns.schedule(body.to_event(session_id, tenant, key=key))


@router.get("/scheduled", response_model=list[ScheduledEvent])
async def list_scheduled_events(
    session_id: SessionId, turns: TheTurns, sessions: TheSessions, tenant: TheTenant, limit: Limit = 100
) -> list[records.ScheduledEvent]:
    """List outside events and reminders: scheduled events first, then delivered and canceled events."""
    await sessions.store.get(tenant, session_id)  # raises NotFound
    return await turns.scheduled.of_session(tenant, session_id, limit=limit)


@router.put("/{event_id}", response_model=ScheduledEvent)
async def move_event(
    session_id: SessionId, event_id: Identifier, body: NewTime, turns: TheTurns, tenant: TheTenant
) -> records.ScheduledEvent:
    """Change an event's due time. Returns 409 if the event was delivered or canceled."""
    return await turns.move(tenant, session_id, event_id, body.not_before)


@router.delete("/{event_id}", response_model=ScheduledEvent)
async def cancel_event(
    session_id: SessionId, event_id: Identifier, turns: TheTurns, tenant: TheTenant
) -> records.ScheduledEvent:
    """Cancel an event, and its turn if the turn hasn't started. If the turn has started, the event is unchanged."""
    return await turns.scheduled.cancel(tenant, session_id, event_id)
