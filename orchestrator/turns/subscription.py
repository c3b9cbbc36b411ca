"""One listener's subscription to a session's live events: bounded, and it says when something was missed.

The durable log is not its matter: who receives `LOOK`, or misses a number, reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.turns.event import LOOK, TOKEN, Event
from orchestrator.types import SessionId

MOST_WAITING = 512
"""Events that may wait for a slow listener; when more come, all are dropped and it has to look at the log."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The answer of a running turn as far as it was streamed.

    `event`: a token with offset 0 and all text so far. `stamp` orders it among the live tokens.
    """

    event: Event
    stamp: int


ReadStreamed = Callable[[SessionId], Awaitable[Streamed | None]]


class Subscription:
    """An iterator without end; giving up on one wait does not end it. Belongs to one event loop.

    Args:
        read_streamed: given for listeners that want the text so far first, and again after a gap.
    """

    def __init__(self, session_id: SessionId, read_streamed: ReadStreamed | None = None) -> None:
        self.session_id = session_id
        self._waiting: asyncio.Queue[tuple[Event, int]] = asyncio.Queue()
        self._read_streamed = read_streamed
        self._missed_text = read_streamed is not None
        self._read_until = 0

    def push(self, event: Event, stamp: int = 0) -> None:
        """Add an event; `stamp` is given with tokens, and grows."""
        if self._waiting.qsize() >= MOST_WAITING:
            self.drop()
        else:
            self._waiting.put_nowait((event, stamp))

    def nudge(self) -> None:
        """Make the listener look at the log, for example because it has grown."""
        if self._waiting.empty():
            self._waiting.put_nowait((Event(self.session_id, LOOK), 0))

    def drop(self) -> None:
        """Forget what waits: some of it, or what came before it, is lost anyway."""
        while not self._waiting.empty():
            self._waiting.get_nowait()
        self._missed_text = self._read_streamed is not None
        self.nudge()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Event:
        while True:
            if self._missed_text and self._read_streamed is not None:
                streamed = await self._read_streamed(self.session_id)
                self._missed_text = False
                if streamed is not None:
                    self._read_until = streamed.stamp
                    return streamed.event
            event, stamp = await self._waiting.get()
            if event.type != TOKEN or stamp == 0 or stamp > self._read_until:
                return event
