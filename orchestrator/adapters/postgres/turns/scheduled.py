"""Scheduled events in PostgreSQL (RT-31).

Each change to an event and its turn is one transaction that locks the session's lane.
"""

from datetime import datetime
from hmac import compare_digest
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.lane_lock import end_turn, lock_lane, require_lane
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import NOW, record_of, scheduled_events, seconds, turns
from orchestrator.adapters.postgres.turns.inbox import PostgresInbox
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

_EVENTS = scheduled_events.c
_UNDELIVERED: Final = _EVENTS.status == EventStatus.SCHEDULED.value


class PostgresScheduledEvents:
    def __init__(self, database: Database, inbox: PostgresInbox) -> None:
        self._database = database
        self._inbox = inbox

    async def schedule(self, event: NewEvent) -> ScheduledEvent:
        async with self._database.transaction() as connection:
            lane = await require_lane(connection, event.tenant_id, event.session_id)
            found = await _find(connection, event.session_id, _EVENTS.key == event.key)
            wanted = event if found is None else replacing(found, event)
            if found is not None and wanted is None:
                return found
            require_open(closed=lane.closed)
            kept = await _keep(connection, wanted or event, found)
            return await self._deliver(connection, lane, kept)

    async def move(
        self, tenant_id: TenantId, session_id: SessionId, event_id: str, not_before: datetime
    ) -> ScheduledEvent:
        async with self._database.transaction() as connection:
            lane = await require_lane(connection, tenant_id, session_id)
            found = require_movable(await _named(connection, session_id, event_id))
            moved = await _change(connection, found, not_before=not_before, revision=found.revision + 1)
            return await self._deliver(connection, lane, moved)

    async def cancel(self, tenant_id: TenantId, session_id: SessionId, event_id: str) -> ScheduledEvent:
        async with self._database.transaction() as connection:
            lane = await require_lane(connection, tenant_id, session_id)
            found = await _named(connection, session_id, event_id)
            if found.status is EventStatus.DELIVERED:
                turn = await connection.execute(select(turns).where(turns.c.turn_id == found.turn_id))
                waiting = turn.one_or_none()
                if waiting is None or waiting.status != TurnStatus.QUEUED.value:
                    return found
                await end_turn(
                    connection,
                    lane,
                    waiting,
                    TurnStatus.CANCELLED,
                    "the event was canceled",
                    self._inbox.word,
                )
            elif found.status is not EventStatus.SCHEDULED:
                return found
            return await _change(connection, found, status=EventStatus.CANCELLED.value)

    async def answer(
        self, tenant_id: TenantId, reference: str, signature: str, outcome: JsonObject
    ) -> ScheduledEvent:
        which = (_EVENTS.event_id == reference, _EVENTS.tenant_id == tenant_id, _EVENTS.name == RESULT)
        row = await self._database.read_one(select(scheduled_events).where(*which))
        event = None if row is None else _record(row)
        if event is None or not compare_digest(event.signature.encode(), signature.encode()):
            raise NotFound("call", reference)
        async with self._database.transaction() as connection:
            lane = await require_lane(connection, tenant_id, event.session_id)
            found = await _named(connection, event.session_id, reference)
            payload = found.answered_with(outcome)
            if payload is None:
                return found
            require_open(closed=lane.closed)
            scheduled = EventStatus.SCHEDULED.value
            change = {
                "payload": payload,
                "not_before": NOW,
                "status": scheduled,
                "revision": found.revision + 1,
            }
            return await self._deliver(connection, lane, await _change(connection, found, **change))

    async def of_session(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 100
    ) -> list[ScheduledEvent]:
        query = (
            select(scheduled_events)
            .where(_EVENTS.session_id == session_id, _EVENTS.tenant_id == tenant_id, _EVENTS.name != RESULT)
            .order_by(_UNDELIVERED.desc(), _EVENTS.not_before, _EVENTS.event_id)
            .limit(limit)
        )
        return [_record(row) for row in await self._database.read_all(query)]

    async def deliver_due(self) -> list[SessionId]:
        due = await self._database.fetch_all(statement("due_events"), {"limit": MOST_DELIVERED})
        return [
            SessionId(session_id)
            for event_id, session_id in due
            if await self._deliver_one(event_id, session_id)
        ]

    async def _deliver_one(self, event_id: str, session_id: str) -> bool:
        """Deliver an event. Return False if it was not delivered.

        If the inbox is full, postpone the event. If the session is closed, refuse the event.
        """
        async with self._database.transaction() as connection:
            lane = await lock_lane(connection, SessionId(session_id))
            event = await _find(connection, session_id, _EVENTS.event_id == event_id)
            if lane is None or event is None or event.status is not EventStatus.SCHEDULED:
                return False
            if lane.closed:
                await _change(connection, event, status=EventStatus.REFUSED.value)
                return False
            try:
                return (await self._deliver(connection, lane, event)).turn_id is not None
            except InboxFull:
                await _change(connection, event, not_before=NOW + seconds(TRY_AGAIN_AFTER_S))
                return False

    async def _deliver(
        self, connection: AsyncConnection, lane: Row[Any], event: ScheduledEvent
    ) -> ScheduledEvent:
        """In the caller's transaction, submit the event's turn if the event is due."""
        is_due = select(_EVENTS.not_before <= NOW).where(_EVENTS.event_id == event.event_id)
        if event.status is not EventStatus.SCHEDULED or not (await connection.execute(is_due)).scalar_one():
            return event
        receipt = await self._inbox.submit_locked(connection, lane, event.as_turn())
        return await _change(connection, event, status=EventStatus.DELIVERED.value, turn_id=receipt.turn_id)


async def _keep(connection: AsyncConnection, event: NewEvent, found: ScheduledEvent | None) -> ScheduledEvent:
    """Store a new event, or replace the event with the same key."""
    values = {
        "name": event.name,
        "payload": event.payload,
        "not_before": event.not_before or NOW,
        "status": EventStatus.SCHEDULED.value,
        "set_by": event.set_by,
    }
    if found is not None:
        return await _change(connection, found, **values, revision=found.revision + 1, turn_id=None)
    counting = select(func.count()).where(_EVENTS.session_id == event.session_id, _UNDELIVERED)
    if (await connection.execute(counting)).scalar_one() >= MOST_SCHEDULED:
        raise too_many_events()
    names = {
        "event_id": new_event_id(event.name),
        "session_id": event.session_id,
        "tenant_id": event.tenant_id,
        "key": event.key,
    }
    stored = await connection.execute(
        insert(scheduled_events).values(**names, **values).returning(*scheduled_events.c)
    )
    return _record(stored.one())


async def _change(connection: AsyncConnection, event: ScheduledEvent, **values: Any) -> ScheduledEvent:
    changed = await connection.execute(
        update(scheduled_events)
        .where(_EVENTS.event_id == event.event_id)
        .values(**values, updated_at=NOW)
        .returning(*scheduled_events.c)
    )
    return _record(changed.one())


async def _named(connection: AsyncConnection, session_id: SessionId, event_id: str) -> ScheduledEvent:
    found = await _find(connection, session_id, or_(_EVENTS.event_id == event_id, _EVENTS.key == event_id))
    if found is None:
        raise NotFound("event", event_id)
    return found


async def _find(
    connection: AsyncConnection, session_id: str, which: ColumnElement[bool]
) -> ScheduledEvent | None:
    query = select(scheduled_events).where(_EVENTS.session_id == session_id, which).limit(1)
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else _record(row)


def _record(row: Row[Any]) -> ScheduledEvent:
    return record_of(ScheduledEvent, row)
