"""Live events over Redis publish/subscribe: one message a turn, one listening connection a process.

Nothing is kept: who was not listening reads the log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.event import Event
from orchestrator.types import JsonObject, SessionId, TurnId

CHANNEL = "parley:events:"
SUBSCRIBED_WITHIN_S = 2.0
RECONNECT_AFTER_S = 0.5
READ_FOR_S = 1.0

_log = get_logger(__name__)


@dataclass(slots=True)
class _Channel:
    listeners: set[asyncio.Queue[Event]] = field(default_factory=set[asyncio.Queue[Event]])
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)


class RedisEvents:
    """Implements `ports.events.LiveEvents`. Belongs to one event loop; `close` it there."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis
        self._channels: dict[str, _Channel] = {}
        self._pubsub: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._telling = asyncio.Lock()
        self.failures = 0
        """Messages that could not be published since the start."""

    async def ping(self) -> None:
        """Raises Unavailable when Redis does not answer."""
        try:
            await self._redis.execute_command("PING")
        except (RedisError, OSError) as error:
            raise Unavailable(f"Redis does not answer: {error}") from error

    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        """Tell the listeners in one message."""
        message = orjson.dumps([_encode(event) for event in events])
        try:
            await self._redis.execute_command("PUBLISH", CHANNEL + session_id, message)
        except (RedisError, OSError) as error:
            self.failures += 1
            _log.warning("Live events could not be published.", session=session_id, error=str(error))

    @asynccontextmanager
    async def listen(self, session_id: SessionId) -> AsyncGenerator[AsyncIterator[Event]]:
        """Listen from here on. While Redis is away nothing arrives, and nothing is raised."""
        name = CHANNEL + session_id
        queue: asyncio.Queue[Event] = asyncio.Queue()
        channel = await self._join(name, queue)
        try:
            yield _Stream(queue)
        finally:
            await self._leave(name, channel, queue)

    async def close(self) -> None:
        """Stop listening."""
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        if self._pubsub is not None:
            await self._pubsub.aclose()

    async def _join(self, name: str, queue: asyncio.Queue[Event]) -> _Channel:
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = _Channel()
            channel.listeners.add(queue)
            await self._tell("subscribe", name)
        channel.listeners.add(queue)
        with contextlib.suppress(TimeoutError):  # Redis is away: the listener reads the log meanwhile
            await asyncio.wait_for(channel.confirmed.wait(), SUBSCRIBED_WITHIN_S)
        return channel

    async def _leave(self, name: str, channel: _Channel, queue: asyncio.Queue[Event]) -> None:
        channel.listeners.discard(queue)
        if not channel.listeners and self._channels.get(name) is channel:
            del self._channels[name]
            await self._tell("unsubscribe", name)

    async def _tell(self, command: str, name: str) -> None:
        """Send a (un)subscription; its confirmation is read by the reader."""
        async with self._telling:  # else each of several first callers would open a connection
            if self._pubsub is None:
                self._pubsub = self._redis.pubsub()
            try:
                await getattr(self._pubsub, command)(name)
            except (RedisError, OSError) as error:
                # The reader subscribes to everything again when it has reconnected.
                _log.warning("A channel could not be changed.", command=command, error=str(error))
        if self._reader is None:
            self._reader = asyncio.create_task(self._read(), name="live events")

    async def _read(self) -> None:
        while True:
            try:
                message = await self._pubsub.get_message(timeout=READ_FOR_S)
            except (RedisError, OSError) as error:
                _log.warning("Live events are interrupted.", error=str(error))
                await asyncio.sleep(RECONNECT_AFTER_S)
                await self._resubscribe()
                continue
            if message is not None:
                self._deliver(message)
            elif not self._pubsub.subscribed:
                await asyncio.sleep(0.01)  # nothing is subscribed, so the read does not wait

    async def _resubscribe(self) -> None:
        names = list(self._channels)
        if not names:
            return
        with contextlib.suppress(RedisError, OSError):  # the next read fails again and comes back here
            await self._pubsub.subscribe(*names)

    def _deliver(self, message: JsonObject) -> None:
        channel = self._channels.get(message["channel"].decode())
        if channel is None:
            return
        if message["type"] == "subscribe":
            channel.confirmed.set()
        elif message["type"] == "message":
            session_id = SessionId(message["channel"].decode().removeprefix(CHANNEL))
            for event in _decode(session_id, message["data"]):
                for queue in channel.listeners:
                    queue.put_nowait(event)


class _Stream:
    """The events of a queue, without end; giving up on one wait does not end it."""

    def __init__(self, queue: asyncio.Queue[Event]) -> None:
        self._queue = queue

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> Event:
        return await self._queue.get()


def _encode(event: Event) -> JsonObject:
    return {
        "type": event.type,
        "turn_id": event.turn_id,
        "payload": event.payload,
        "number": event.number,
    }


def _decode(session_id: SessionId, message: bytes) -> list[Event]:
    return [
        Event(
            session_id,
            entry["type"],
            None if entry["turn_id"] is None else TurnId(entry["turn_id"]),
            entry["payload"],
            entry["number"],
        )
        for entry in orjson.loads(message)
    ]
