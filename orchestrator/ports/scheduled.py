"""Events that are delivered to sessions when they are due (RT-31)."""

from datetime import datetime
from typing import Protocol

from orchestrator.turns.scheduled import NewEvent, ScheduledEvent
from orchestrator.types import JsonObject, SessionId, TenantId


class ScheduledEvents(Protocol):
    """Scheduled events of sessions. Every method raises Unavailable.

    An event is delivered at most once per revision, even if a process dies.
    """

    async def schedule(self, event: NewEvent) -> ScheduledEvent:
        """Store an event, and deliver it if it is due.

        Raises NotFound, SessionClosed, InboxFull.
        """
        ...

    async def move(
        self, tenant_id: TenantId, session_id: SessionId, event_id: str, not_before: datetime
    ) -> ScheduledEvent:
        """Change when an undelivered event is due. Raises NotFound, Refused."""
        ...

    async def cancel(self, tenant_id: TenantId, session_id: SessionId, event_id: str) -> ScheduledEvent:
        """Cancel an event, with its turn if that hasn't started; `event_id` may be its key. Raises NotFound."""
        ...

    async def answer(
        self, tenant_id: TenantId, reference: str, signature: str, outcome: JsonObject
    ) -> ScheduledEvent:
        """Submit the result of a call that is answered later, once, as a turn of its session (RT-32).

        Raises NotFound for an unknown reference or a wrong signature, Refused for a second, different answer,
        SessionClosed, InboxFull.
        """
        ...

    async def of_session(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 100
    ) -> list[ScheduledEvent]:
        """Return the session's events, the next one first, without those that look after calls. Raises NotFound."""
        ...

    async def deliver_due(self, *, limit: int = 100) -> list[SessionId]:
        """Deliver due events; return the sessions that have a new turn."""
        ...
