"""Prepare calls of tools that may answer later: a reference, a signed callback URL, a time limit (RT-32)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.ports.scheduled import ScheduledEvents
from orchestrator.turns.scheduled import CALLS, expect_result


class LaterResults:
    """A scheduler of checks for late results. `public_url`: the gateway's URL for other systems."""

    def __init__(self, store: ScheduledEvents, public_url: str) -> None:
        self._store = store
        self._public_url = public_url.rstrip("/")

    async def expect(
        self, spec: ToolSpec, call: ToolCall, fingerprint: str | None, *, set_by: str, look_in_s: float
    ) -> ToolCall:
        """Return the call with its reference and callback URL, and schedule a check in `look_in_s` seconds.

        `set_by`: the step or turn that makes the call. Repeating this method for the same call has no effect.
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
        """Cancel the check of a call, because the tool has answered immediately."""
        await self._store.cancel(call.tenant_id, call.session_id, call.reference)
