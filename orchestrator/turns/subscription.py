"""Bounded subscriptions to a session's live events.

A listener that receives `LOOK`, or detects a gap in the numbers, must read the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from orchestrator.turns.event import LOOK, TOKEN, Event
from orchestrator.types import SessionId

MOST_WAITING = 512
"""Maximum number of buffered events. On overflow, all are dropped and the listener must read the log."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """The text that a running turn has streamed so far.

    `event`: a token event with the text and offset 0. `stamp`: the stamp of the last live token in the text.
    """

    event: Event
    stamp: int


ReadStreamed = Callable[[SessionId], Awaitable[Streamed | None]]


class Subscription:
    """An endless iterator of live events for one event loop. Canceling a wait does not end the iterator.

    Args:
        read_streamed: returns the text streamed so far. The iterator yields this text at the start and after
            a loss. Default: only new tokens are yielded.
    """

    def __init__(self, session_id: SessionId, read_streamed: ReadStreamed | None = None) -> None:
        self.session_id = session_id
        self._waiting: asyncio.Queue[tuple[Event, int]] = asyncio.Queue()
        self._read_streamed = read_streamed
        self._missed_text = read_streamed is not None
        self._read_until = 0

    def push(self, event: Event, stamp: int = 0) -> None:
        """Buffer an event, or drop all if the buffer is full. `stamp`: orders tokens; 0 for other events."""
        if self._waiting.qsize() >= MOST_WAITING:
            self.drop()
        else:
            self._waiting.put_nowait((event, stamp))

    def nudge(self) -> None:
        """Buffer a `LOOK` event, which tells the listener to read the log, unless other events are buffered."""
        if self._waiting.empty():
            self._waiting.put_nowait((Event(self.session_id, LOOK), 0))

    def drop(self) -> None:
        """Drop all buffered events, because some were lost, and make the listener read the log."""
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
