"""In-memory scheduled events with the rules of `adapters.postgres.turns.scheduled`."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from orchestrator.errors import InboxFull, NotFound
from orchestrator.ports.scheduled import MOST_DELIVERED
from orchestrator.turns.scheduled import (
    MOST_SCHEDULED,
    RESULT,
    TRY_AGAIN_AFTER_S,
    EventStatus,
    NewEvent,
    ScheduledEvent,
    new_event_id,
    replacing,
    require_movable,
    too_many_events,
)
from orchestrator.turns.turn import TurnStatus, require_open
from orchestrator.types import JsonObject, SessionId, TenantId
from parley.testing.inbox import MemoryInbox
from parley.testing.store import MemoryStore


class MemoryScheduledEvents:
    def __init__(self, store: MemoryStore, inbox: MemoryInbox | None = None) -> None:
        self._store = store
        self._inbox = inbox or MemoryInbox(store)
        self._events: dict[str, ScheduledEvent] = {}

    async def schedule(self, event: NewEvent) -> ScheduledEvent:
        session = self._store.session(event.tenant_id, event.session_id)
        found = self._find(event.session_id, lambda one: one.key == event.key)
        wanted = event if found is None else replacing(found, event)
        if found is not None and wanted is None:
            return found
        event = wanted or event
        require_open(closed=session.closed)
        waiting = [one for one in self._of(event.session_id) if one.status is EventStatus.SCHEDULED]
        if found is None and len(waiting) >= MOST_SCHEDULED:
            raise too_many_events()
        kept = ScheduledEvent(
            event_id=new_event_id(event.name) if found is None else found.event_id,
            session_id=event.session_id,
            tenant_id=event.tenant_id,
            name=event.name,
            payload=event.payload,
            key=event.key,
            not_before=event.not_before or self._store.clock(),
            status=EventStatus.SCHEDULED,
            revision=0 if found is None else found.revision + 1,
            set_by=event.set_by,
        )
        return await self._deliver(kept)

    async def move(
        self, tenant_id: TenantId, session_id: SessionId, event_id: str, not_before: datetime
    ) -> ScheduledEvent:
        found = require_movable(self._named(tenant_id, session_id, event_id))
        return await self._deliver(replace(found, not_before=not_before, revision=found.revision + 1))

    async def cancel(self, tenant_id: TenantId, session_id: SessionId, event_id: str) -> ScheduledEvent:
        found = self._named(tenant_id, session_id, event_id)
        if found.status is EventStatus.DELIVERED and found.turn_id is not None:
            if (await self._inbox.turn(tenant_id, found.turn_id)).status is not TurnStatus.QUEUED:
                return found
            await self._inbox.cancel(tenant_id, found.turn_id)
        elif found.status is not EventStatus.SCHEDULED:
            return found
        return self._change(found, status=EventStatus.CANCELLED)

    async def answer(
        self, tenant_id: TenantId, reference: str, signature: str, outcome: JsonObject
    ) -> ScheduledEvent:
        found = self._events.get(reference)
        known = found is not None and found.name == RESULT and found.tenant_id == tenant_id
        if found is None or not known or found.signature != signature:
            raise NotFound("call", reference)
        payload = found.answered_with(outcome)
        if payload is None:
            return found
        require_open(closed=self._store.session(tenant_id, found.session_id).closed)
        now = self._store.clock()
        return await self._deliver(
            replace(
                found,
                payload=payload,
                not_before=now,
                status=EventStatus.SCHEDULED,
                revision=found.revision + 1,
            )
        )

    async def of_session(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 100
    ) -> list[ScheduledEvent]:
        mine = [one for one in self._of(session_id) if one.tenant_id == tenant_id and one.name != RESULT]
        mine.sort(key=lambda one: (one.status is not EventStatus.SCHEDULED, one.not_before, one.event_id))
        return mine[:limit]

    async def deliver_due(self) -> list[SessionId]:
        now = self._store.clock()
        due = [one for one in self._events.values() if one.status is EventStatus.SCHEDULED]
        due = sorted((one for one in due if one.not_before <= now), key=lambda one: one.not_before)[
            :MOST_DELIVERED
        ]
        return [event.session_id for event in due if await self._deliver_one(event)]

    async def _deliver_one(self, event: ScheduledEvent) -> bool:
        if self._store.session(event.tenant_id, event.session_id).closed:
            self._change(event, status=EventStatus.REFUSED)
            return False
        try:
            return (await self._deliver(event)).turn_id is not None
        except InboxFull:
            self._change(event, not_before=self._store.clock() + timedelta(seconds=TRY_AGAIN_AFTER_S))
            return False

    async def _deliver(self, event: ScheduledEvent) -> ScheduledEvent:
        if event.not_before > self._store.clock():
            return self._change(event)
        receipt = await self._inbox.submit(event.as_turn())
        return self._change(event, status=EventStatus.DELIVERED, turn_id=receipt.turn_id)

    def _change(self, event: ScheduledEvent, **values: Any) -> ScheduledEvent:
        self._events[event.event_id] = changed = replace(event, **values)
        return changed

    def _of(self, session_id: SessionId) -> list[ScheduledEvent]:
        return [one for one in self._events.values() if one.session_id == session_id]

    def _find(self, session_id: SessionId, fits: Callable[[ScheduledEvent], bool]) -> ScheduledEvent | None:
        return next((one for one in self._of(session_id) if fits(one)), None)

    def _named(self, tenant_id: TenantId, session_id: SessionId, event_id: str) -> ScheduledEvent:
        self._store.session(tenant_id, session_id)
        found = self._find(session_id, lambda one: event_id in {one.event_id, one.key})
        if found is None:
            raise NotFound("event", event_id)
        return found
