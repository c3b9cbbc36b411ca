"""In-memory wake-ups and live events, for tasks on the same event loop."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from orchestrator.ports.wakeup import OF_ANY_TENANT
from orchestrator.turns.event import ENDINGS, TOKEN, Event
from orchestrator.turns.subscription import Streamed, Subscription
from orchestrator.types import SessionId, TenantId


class MemoryWakeup:
    def __init__(self) -> None:
        self._ready: dict[SessionId, None] = {}
        self._offered = asyncio.Event()

    async def offer(
        self, *session_ids: SessionId, tenant_id: TenantId = OF_ANY_TENANT, nobody_came: bool = False
    ) -> bool:
        self._ready.update(dict.fromkeys(session_ids))
        self._offered.set()
        return True

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        if not self._ready:
            self._offered.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._offered.wait()
            except TimeoutError:
                return []
        taken = list(self._ready)[:limit]
        for session_id in taken:
            del self._ready[session_id]
        return taken

    async def retire(self, *, force: bool = False) -> bool:
        return force or not self._ready


class MemoryLiveEvents:
    def __init__(self) -> None:
        self._listeners: defaultdict[SessionId, set[Subscription]] = defaultdict(set)
        self._streamed: dict[SessionId, Streamed] = {}
        self._stamp = 0

    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        for event in events:
            self._stamp += 1
            self._keep(event)
            for subscription in self._listeners[session_id]:
                subscription.push(event, self._stamp)
        if not events:
            for subscription in self._listeners[session_id]:
                subscription.nudge()

    def _keep(self, event: Event) -> None:
        """Store the text streamed so far in a turn. Discard it when the turn ends or a token's offset doesn't match."""
        kept = self._streamed.pop(event.session_id, None)
        if event.type != TOKEN:
            if kept is not None and event.type not in ENDINGS:
                self._streamed[event.session_id] = kept
            return
        text, offset = event.payload["text"], event.payload["offset"]
        if offset:
            before = "" if kept is None or kept.event.turn_id != event.turn_id else kept.event.payload["text"]
            if len(before) != offset:
                return
            text = before + text
        so_far = Event(event.session_id, TOKEN, event.turn_id, {"text": text, "offset": 0})
        self._streamed[event.session_id] = Streamed(so_far, self._stamp)

    async def _read_streamed(self, session_id: SessionId) -> Streamed | None:
        return self._streamed.get(session_id)

    @asynccontextmanager
    async def listen(
        self, session_id: SessionId, *, with_streamed: bool = False
    ) -> AsyncGenerator[Subscription]:
        subscription = Subscription(session_id, self._read_streamed if with_streamed else None)
        self._listeners[session_id].add(subscription)
        try:
            yield subscription
        finally:
            self._listeners[session_id].discard(subscription)
