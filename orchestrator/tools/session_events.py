"""Schedule events from a domain's tools, for the session that calls them (RT-31)."""

from collections.abc import Collection
from datetime import UTC, datetime

from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory, NotFound, Refused, ToolFailure
from orchestrator.ports.scheduled import ScheduledEvents
from orchestrator.turns.scheduled import EventStatus, NewEvent, require_known_event
from orchestrator.types import JsonObject


class ServiceEvents:
    """A store-backed `SessionEvents`. `known`: the events that start the domain's flows."""

    def __init__(self, store: ScheduledEvents, known: Collection[str]) -> None:
        self._store = store
        self._known = known

    async def schedule(
        self, call: ToolCall, name: str, payload: JsonObject, *, at: float, key: str
    ) -> JsonObject:
        due = datetime.fromtimestamp(at, UTC)
        event = NewEvent(call.session_id, call.tenant_id, name, payload, key, due, call.idempotency_key)
        try:
            require_known_event(name, self._known)
            return (await self._store.schedule(event)).as_json()
        except Refused as error:
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, str(error)) from error

    async def cancel(self, call: ToolCall, key: str) -> bool:
        try:
            event = await self._store.cancel(call.tenant_id, call.session_id, key)
        except NotFound:
            return False
        return event.status is EventStatus.CANCELLED

    async def scheduled(self, call: ToolCall) -> list[JsonObject]:
        found = await self._store.of_session(call.tenant_id, call.session_id)
        return [event.as_json() for event in found if event.status is EventStatus.SCHEDULED]
