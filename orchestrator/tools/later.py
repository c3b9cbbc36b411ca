"""Schedule session events for tools (RT-31), and checks for results that arrive later (RT-32)."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory, NotFound, Refused, ToolFailure
from orchestrator.ports.scheduled import ScheduledEvents
from orchestrator.turns.scheduled import CALLS, EventStatus, NewEvent, expect_result, require_known_event
from orchestrator.types import JsonObject


class LaterResults:
    """A scheduler of checks for late results. `public_url`: the gateway's URL for other systems."""

    def __init__(self, store: ScheduledEvents, public_url: str) -> None:
        self._store = store
        self._public_url = public_url.rstrip("/")

    async def expect(
        self, spec: ToolSpec, call: ToolCall, fingerprint: str | None, *, set_by: str, look_in_s: float
    ) -> ToolCall:
        """Return the call with its reference and callback URL, and schedule a check in `look_in_s` seconds.

        `set_by`: the ID of the step or turn that makes the call. `fingerprint`: the call's key in the
        side-effect ledger. Repeating this method for the same call and `set_by` has no further effect.
        """
        event = await self._store.schedule(
            expect_result(
                call.session_id,
                call.tenant_id,
                call=call.idempotency_key,
                tool_id=spec.tool_id,
                fingerprint=fingerprint,
                due=datetime.fromtimestamp(call.now, UTC) + timedelta(seconds=look_in_s),
                set_by=set_by,
            )
        )
        query = urlencode({"tenant": call.tenant_id, "signature": event.signature})
        url = f"{self._public_url}{CALLS}{quote(event.event_id)}?{query}"
        return replace(call, reference=event.event_id, callback_url=url)

    async def forget(self, call: ToolCall) -> None:
        """Cancel a call's scheduled check, because the tool has answered immediately."""
        await self._store.cancel(call.tenant_id, call.session_id, call.reference)


class ServiceEvents:
    """A store-backed `SessionEvents`. `known`: the names of the events that start the domain's flows."""

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
