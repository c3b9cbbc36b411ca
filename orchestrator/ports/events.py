"""Live events: told to whoever listens now; the durable log is read from the store (RT-15)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TenantId


class LiveEvents(Protocol):
    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        """Tell the listeners; never raises for a store that is down (listeners catch up from the log)."""
        ...

    def listen(self, session_id: SessionId) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Listen from the moment the context is entered."""
        ...


class EventLog(Protocol):
    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        """Durable events with numbers above `after`, in order."""
        ...
