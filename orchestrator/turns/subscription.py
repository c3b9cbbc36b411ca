"""A listener's subscription to a session's live events: limited, and aware of gaps.

Receivers of `LOOK`, or of a number gap, must read the durable log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.turns.event import LOOK, TOKEN, Event
from orchestrator.types import SessionId

MOST_WAITING = 512
"""Events buffered for a slow listener; on overflow all are dropped and the listener must read the log."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The streamed part of a running turn's answer.

    `event`: a token with offset 0 and all text so far. `stamp`: its order among live tokens.
    """

    event: Event
    stamp: int


ReadStreamed = Callable[[SessionId], Awaitable[Streamed | None]]


class Subscription:
    """An endless iterator; canceling one wait does not end it. Belongs to one event loop.

    Args:
        read_streamed: provided for listeners that want the text so far, initially and after a gap.
    """

    def __init__(self, session_id: SessionId, read_streamed: ReadStreamed | None = None) -> None:
        self.session_id = session_id
        self._waiting: asyncio.Queue[tuple[Event, int]] = asyncio.Queue()
        self._read_streamed = read_streamed
        self._missed_text = read_streamed is not None
        self._read_until = 0

    def push(self, event: Event, stamp: int = 0) -> None:
        """Add an event; tokens have an increasing `stamp`."""
        if self._waiting.qsize() >= MOST_WAITING:
            self.drop()
        else:
            self._waiting.put_nowait((event, stamp))

    def nudge(self) -> None:
        """Wake the listener to read the log, for example because the log has grown."""
        if self._waiting.empty():
            self._waiting.put_nowait((Event(self.session_id, LOOK), 0))

    def drop(self) -> None:
        """Drop buffered events after an earlier or partial loss."""
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
