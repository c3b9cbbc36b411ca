"""Live events over Redis publish/subscribe: one message a turn, one listening connection a process.

Nothing is kept: who was not listening reads the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.turns.event import Event
from orchestrator.types import JsonObject, SessionId, TurnId

CHANNEL = "parley:events:"
HEARTBEAT_CHANNEL = "parley:events"
SUBSCRIBED_WITHIN_S = 2.0
RECONNECT_AFTER_S = 0.5
READ_FOR_S = 1.0
HEARTBEAT_EVERY_S = 5.0
SILENT_FOR_S = 12.0
"""Two heartbeats that did not come back: the connection is dead, though nobody closed it."""

_log = get_logger(__name__)


@dataclass(slots=True)
class _Channel:
    listeners: set[asyncio.Queue[Event]] = field(default_factory=set[asyncio.Queue[Event]])
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)


class RedisEvents:
    """Implements `ports.events.LiveEvents`. Belongs to one event loop; `close` it there.

    Only the reader connects, reads and reconnects; others at most write a subscription in between,
    because two readers of one connection fail.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis
        self._channels: dict[str, _Channel] = {}
        self._pubsub: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._heard_at = 0.0
        self._beat_at = 0.0
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
        await self._disconnect()

    async def _join(self, name: str, queue: asyncio.Queue[Event]) -> _Channel:
        channel = self._channels.get(name)
        if channel is None:
            channel = self._channels[name] = _Channel()
            await self._write("SUBSCRIBE", name)
        channel.listeners.add(queue)
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._keep_reading(), name="live events")
        with contextlib.suppress(TimeoutError):  # Redis is away: the listener reads the log meanwhile
            await asyncio.wait_for(channel.confirmed.wait(), SUBSCRIBED_WITHIN_S)
        return channel

    async def _leave(self, name: str, channel: _Channel, queue: asyncio.Queue[Event]) -> None:
        channel.listeners.discard(queue)
        if not channel.listeners and self._channels.get(name) is channel:
            del self._channels[name]
            await self._write("UNSUBSCRIBE", name)

    async def _write(self, command: str, *names: str) -> None:
        """Write a (un)subscription; the reader sees its confirmation, or that the connection broke."""
        if self._pubsub is not None:
            with contextlib.suppress(RedisError, OSError):
                await self._pubsub.connection.send_command(command, *names, check_health=False)

    async def _keep_reading(self) -> None:
        while True:
            try:
                if self._pubsub is None:
                    await self._connect()
                await self._read()
            except (RedisError, OSError) as error:
                _log.warning("Live events are interrupted.", error=str(error))
                await self._disconnect()
                await asyncio.sleep(RECONNECT_AFTER_S)

    async def _connect(self) -> None:
        pubsub: Any = self._redis.pubsub()
        try:
            await pubsub.subscribe(HEARTBEAT_CHANNEL)
        except BaseException:
            await pubsub.aclose()
            raise
        pubsub.connection.health_check_interval = 0  # its answer would be read beside the reader
        self._pubsub = pubsub
        self._heard_at = self._beat_at = time.monotonic()
        if self._channels:
            await self._write("SUBSCRIBE", *self._channels)

    async def _disconnect(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        for channel in self._channels.values():
            channel.confirmed.clear()
        if pubsub is not None:
            with contextlib.suppress(RedisError, OSError):
                await pubsub.aclose()

    async def _read(self) -> None:
        """Deliver one message, or notice that none comes any more."""
        message = await self._pubsub.get_message(timeout=READ_FOR_S)
        now = time.monotonic()
        if message is not None:
            self._heard_at = now
            self._deliver(message)
        elif now - self._heard_at > SILENT_FOR_S:
            raise RedisConnectionError("nothing was heard for too long")
        elif now - self._beat_at > HEARTBEAT_EVERY_S:
            self._beat_at = now
            await self._redis.publish(HEARTBEAT_CHANNEL, b"")

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
