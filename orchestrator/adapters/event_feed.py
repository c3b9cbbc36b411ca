"""Event streams without gaps: stored events first, then live events (RT-15).

Followers receive live events as they arrive. If an event number is missing, or a poll finds newer events, a follower
reads the log, so that no stored event is lost if Redis loses data. A feed belongs to one event loop.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field

from orchestrator.errors import Unavailable
from orchestrator.ports.turns import EventLog, Inbox, LiveEvents
from orchestrator.telemetry import get_logger
from orchestrator.turns.event import ENDINGS, LOOK, TOKEN, Event
from orchestrator.turns.repair import REPAIRED
from orchestrator.turns.subscription import Subscription
from orchestrator.turns.turn import FINISHED, TurnRecord
from orchestrator.types import SessionId, TenantId, TurnId

LOOK_EVERY_S = 1.0
"""Interval of polls of the log or of a turn, in seconds. The log takes one query per tenant."""
PAGE = 500

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Leave:
    """A follower's permission to listen.

    `holds`: called every `every_s` seconds; returns False to end the stream.
    """

    holds: Callable[[], Awaitable[bool]]
    every_s: float


@dataclass(slots=True, eq=False)
class _Follower:
    """A follower of one session's events.

    Args:
        last: the number of the last delivered event.
        ask_at: the time of the next permission check, as returned by `time.monotonic`.
        context: the context variables for store queries.
    """

    tenant_id: TenantId
    session_id: SessionId
    last: int
    subscription: Subscription
    leave: Leave | None = None
    ask_at: float = field(default_factory=time.monotonic)
    context: Context = field(default_factory=copy_context)

    def __post_init__(self) -> None:
        if self.leave is not None:
            self.ask_at += self.leave.every_s

    def is_due(self) -> bool:
        return self.leave is not None and time.monotonic() >= self.ask_at

    async def may_go_on(self) -> bool:
        if self.leave is None or not self.is_due():
            return True
        self.ask_at = time.monotonic() + self.leave.every_s
        return await self.leave.holds()


class EventFeed:
    """A feed of session events for any number of followers.

    Args:
        inbox: tells whether a turn has ended. The feed skips the stored token events of ended turns.
    """

    def __init__(self, log: EventLog, live: LiveEvents, inbox: Inbox) -> None:
        self._log = log
        self._live = live
        self._inbox = inbox
        self._followers: set[_Follower] = set()
        self._watch: asyncio.Task[None] | None = None

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0
    ) -> AsyncGenerator[Event]:
        """Yield the session's stored events with numbers above `after`, in order."""
        while events := await self._log.read(tenant_id, session_id, after=after, limit=PAGE):
            for event in events:
                yield event
            after = events[-1].number or after

    async def last_number(self, tenant_id: TenantId, session_id: SessionId) -> int:
        """Return the session's last event number, or 0 if the session has no events."""
        return (await self._log.last_numbers(tenant_id, [session_id])).get(session_id, 0)

    async def follow(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        after: int | None = 0,
        leave: Leave | None = None,
    ) -> AsyncGenerator[Event]:
        """Yield every stored event with a number above `after`, once and in order, and live-only events.

        Live-only events (tokens and a running turn's progress) have no number. If `after` is None or past the
        end of the log, start at the end. The generator ends only when `leave.holds` returns False, so callers
        must close it.

        Raises:
            Unavailable: the log cannot be read. Resume later after the last number received.
        """
        async with self._live.listen(session_id, with_streamed=True) as subscription:
            start = await self._start(tenant_id, session_id, after)
            follower = _Follower(tenant_id, session_id, start, subscription, leave)
            self._add(follower)
            try:
                while await follower.may_go_on():
                    async for event in self.read(tenant_id, session_id, after=follower.last):
                        follower.last = event.number or follower.last
                        yield event
                    async for event in self._hear(follower):
                        yield event
            finally:
                self._followers.discard(follower)

    async def _start(self, tenant_id: TenantId, session_id: SessionId, after: int | None) -> int:
        if after == 0:
            return 0
        end = await self.last_number(tenant_id, session_id)
        return end if after is None else min(after, end)

    async def _hear(self, follower: _Follower) -> AsyncGenerator[Event]:
        """Yield live events until the log must be read again.

        Skip the first token event if its turn has ended.
        """
        comes_late = True
        async for event in follower.subscription:
            if event.type == LOOK:
                return
            if event.number is None:
                if comes_late and event.type == TOKEN:
                    comes_late = False
                    if await self._has_ended(follower.tenant_id, event.turn_id):
                        continue
                yield event
            elif event.number == follower.last + 1:
                follower.last = event.number
                yield event
            elif event.number > follower.last:
                return

    async def _has_ended(self, tenant_id: TenantId, turn_id: TurnId | None) -> bool:
        """Return whether the turn has ended.

        After a worker's death, Redis can still contain tokens from a turn that has ended.
        """
        if turn_id is None:
            return False
        return (await self._inbox.turn(tenant_id, turn_id)).status in FINISHED

    def _add(self, follower: _Follower) -> None:
        self._followers.add(follower)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look(), name="ends of event logs")

    async def _look(self) -> None:
        """While there are followers, wake those whose log has grown or whose permission check is due."""
        answering = True
        while self._followers:
            await asyncio.sleep(LOOK_EVERY_S)
            for follower in self._followers:
                if follower.is_due():
                    follower.subscription.nudge()
            by_tenant: dict[TenantId, list[_Follower]] = {}
            for follower in self._followers:
                by_tenant.setdefault(follower.tenant_id, []).append(follower)
            try:
                for tenant_id, followers in by_tenant.items():
                    looking = self._look_for(tenant_id, followers)
                    await asyncio.create_task(looking, context=followers[0].context)
            except Unavailable as error:
                if answering:
                    _log.warning("Could not read the event logs.", error=error)
                answering = False
            else:
                answering = True

    async def _look_for(self, tenant_id: TenantId, followers: list[_Follower]) -> None:
        numbers = await self._log.last_numbers(tenant_id, list({one.session_id for one in followers}))
        for follower in followers:
            if numbers.get(follower.session_id, 0) > follower.last:
                follower.subscription.nudge()

    async def close(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with suppress(asyncio.CancelledError):
                await self._watch


Waiter = Callable[[TenantId, SessionId, TurnId, float], Awaitable[TurnRecord]]
"""A function that waits for a turn to finish, up to a timeout in seconds, and returns the turn's record."""


async def wait_for_turn(
    inbox: Inbox,
    live: LiveEvents,
    tenant_id: TenantId,
    session_id: SessionId,
    turn_id: TurnId,
    timeout_s: float,
) -> TurnRecord:
    """Return the turn's record once the turn has finished, or after `timeout_s` seconds. Raises NotFound."""
    now = asyncio.get_running_loop().time
    ends_at = now() + timeout_s
    async with live.listen(session_id) as events:
        ending = asyncio.ensure_future(_ended(events, turn_id))
        try:
            while True:
                record = await inbox.turn(tenant_id, turn_id)
                left = ends_at - now()
                if record.status in FINISHED or left <= 0:
                    return record
                await asyncio.wait({ending}, timeout=min(left, LOOK_EVERY_S))
                if ending.done():
                    ending = asyncio.ensure_future(_ended(events, turn_id))
        finally:
            ending.cancel()


async def _ended(events: AsyncIterator[Event], turn_id: TurnId) -> None:
    """Wait for an event that ends the turn. A repair can end a turn without an answer."""
    async for event in events:
        if event.turn_id == turn_id and event.type in {*ENDINGS, REPAIRED}:
            return
