"""Waits for a turn to finish: woken by live events, and once a second in case none comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from orchestrator.ports.turns.events import LiveEvents
from orchestrator.ports.turns.inbox import Inbox
from orchestrator.turns.event import ENDINGS, Event
from orchestrator.turns.turn import FINISHED, TurnRecord
from orchestrator.types import SessionId, TenantId, TurnId

LOOK_EVERY_S = 1.0


class TurnWaiter:
    """Waits on behalf of callers; any number at once."""

    def __init__(self, inbox: Inbox, live: LiveEvents) -> None:
        self._inbox = inbox
        self._live = live

    async def finished(
        self, tenant_id: TenantId, session_id: SessionId, turn_id: TurnId, timeout_s: float
    ) -> TurnRecord:
        """The turn once it has finished, or as it is after `timeout_s` seconds. Raises NotFound."""
        now = asyncio.get_running_loop().time
        ends_at = now() + timeout_s
        async with self._live.listen(session_id) as events:
            ending = asyncio.ensure_future(_ended(events, turn_id))
            try:
                while True:
                    record = await self._inbox.turn(tenant_id, turn_id)
                    left = ends_at - now()
                    if record.status in FINISHED or left <= 0:
                        return record
                    await asyncio.wait({ending}, timeout=min(left, LOOK_EVERY_S))
                    if ending.done():
                        ending = asyncio.ensure_future(_ended(events, turn_id))
            finally:
                ending.cancel()


async def _ended(events: AsyncIterator[Event], turn_id: TurnId) -> None:
    """Return when an event says that the turn has ended."""
    async for event in events:
        if event.turn_id == turn_id and event.type in ENDINGS:
            return
