"""The port for events that are delivered to sessions at a scheduled time (RT-31)."""

from datetime import datetime
from typing import Final, Protocol

from orchestrator.turns.scheduled import NewEvent, ScheduledEvent
from orchestrator.types import JsonObject, SessionId, TenantId

MOST_DELIVERED: Final = 100
"""Maximum number of events per call of `deliver_due`."""


class ScheduledEvents(Protocol):
    """The scheduled events of all sessions. Every method can raise Unavailable.

    Each revision of an event is delivered at most once, even if a process dies.
    """

    async def schedule(self, event: NewEvent) -> ScheduledEvent:
        """Store an event, and deliver it if it is due. Raises NotFound, SessionClosed or InboxFull."""
        ...

    async def move(
        self, tenant_id: TenantId, session_id: SessionId, event_id: str, not_before: datetime
    ) -> ScheduledEvent:
        """Change an event's due time, and deliver the event if it is due.

        Raises NotFound, or Refused if the event was delivered or canceled.
        """
        ...

    async def cancel(self, tenant_id: TenantId, session_id: SessionId, event_id: str) -> ScheduledEvent:
        """Cancel an event and its turn, unless the turn has started. Raises NotFound.

        `event_id`: the event's ID or key.
        """
        ...

    async def answer(
        self, tenant_id: TenantId, reference: str, signature: str, outcome: JsonObject
    ) -> ScheduledEvent:
        """Submit an asynchronous tool call's result once, as a turn in the call's session (RT-32).

        `reference` and `signature`: from the call's callback URL. `outcome`: the result.

        Raises:
            NotFound: the reference is unknown or the signature is wrong.
            Refused: the call already has a different result.
            SessionClosed: the session is closed.
            InboxFull: the session can't accept more turns.
        """
        ...

    async def of_session(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 100
    ) -> list[ScheduledEvent]:
        """Return the session's events, except tool-call events. Undelivered events come first, by due time."""
        ...

    async def deliver_due(self) -> list[SessionId]:
        """Deliver up to `MOST_DELIVERED` due events. Return the sessions that have a new turn."""
        ...
