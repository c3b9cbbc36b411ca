"""Live events: published to whoever listens now; the durable log is read from the store (RT-15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from orchestrator.turns.event import Event
from orchestrator.turns.subscription import Subscription
from orchestrator.types import SessionId, TenantId


class LiveEvents(Protocol):
    """Hints of what happens. Nothing is kept but the text that a running turn has streamed so far.

    A turn that streams its answer publishes tokens, ``Event(session_id, "token", turn_id, {"text": piece,
    "offset": characters before it})``, the first with offset 0 and each going on where the last one
    ended. Offset 0 begins anew, as after a crash. The text is forgotten with the turn's ``answer`` or
    ``failed``.
    """

    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        """Reach the listeners in one round trip; no events at all make them look at the log.

        Tokens of one call belong to one turn and follow each other. Never raises for a store that is down:
        listeners catch up from the log.
        """
        ...

    def listen(
        self, session_id: SessionId, *, with_streamed: bool = False
    ) -> AbstractAsyncContextManager[Subscription]:
        """Listen from the moment the context is entered.

        `with_streamed`: when a turn is streaming, hear first one token with offset 0 and all text so far,
        then the tokens after it; and so again when pieces were lost.
        """
        ...


class EventLog(Protocol):
    """The log of what happened in sessions, numbered without a hole from 1 on. Every method raises Unavailable."""

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        """Durable events with numbers above `after`, in order."""
        ...

    async def last_numbers(
        self, tenant_id: TenantId, session_ids: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        """The number of each session's last event; 0 while it has none. Unknown sessions are left out."""
        ...
