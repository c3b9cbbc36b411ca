"""Events in memory: the durable log of a `MemoryStore`, and live events between tasks of one loop."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from orchestrator.testing.store import MemoryStore
from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TenantId


class MemoryEventLog:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        session = self._store.sessions.get(session_id)
        if session is None or session.tenant_id != tenant_id:
            return []
        return session.events[after : after + limit]


class MemoryLiveEvents:
    def __init__(self) -> None:
        self._listeners: defaultdict[SessionId, set[asyncio.Queue[Event]]] = defaultdict(set)

    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        for queue in self._listeners[session_id]:
            for event in events:
                queue.put_nowait(event)

    @asynccontextmanager
    async def listen(self, session_id: SessionId) -> AsyncGenerator[AsyncIterator[Event]]:
        queue: asyncio.Queue[Event] = asyncio.Queue()
        self._listeners[session_id].add(queue)
        try:
            yield _drain(queue)
        finally:
            self._listeners[session_id].discard(queue)


async def _drain(queue: asyncio.Queue[Event]) -> AsyncIterator[Event]:
    while True:
        yield await queue.get()
