"""Live events over Redis publish/subscribe, with one listening connection per process.

Redis stores only the streamed text of a running turn, for up to two minutes after its last part.
`lua/stream_text.lua` appends a part and publishes it atomically. Listeners that missed events read the log.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from orchestrator.adapters.redis.client import Gathered, read_script, translated
from orchestrator.telemetry import get_logger
from orchestrator.turns.event import ENDINGS, TOKEN, Event
from orchestrator.turns.subscription import Streamed, Subscription
from orchestrator.types import JsonObject, SessionId, TurnId

CHANNEL = "parley:events:"
STREAMED = "parley:streamed:"
STREAMED_KEPT_S = 120
STREAMED_CHARACTERS = 200_000
HEARTBEAT_CHANNEL = "parley:events"
SUBSCRIBED_WITHIN_S = 2.0
RECONNECT_AFTER_S = 0.5
READ_FOR_S = 1.0
HEARTBEAT_EVERY_S = 5.0
SILENT_FOR_S = 12.0
"""Silence after which a connection counts as dead, in seconds: two missed heartbeats."""

_log = get_logger(__name__)


@dataclass(slots=True)
class _Channel:
    listeners: set[Subscription] = field(default_factory=set[Subscription])
    confirmed: asyncio.Event = field(default_factory=asyncio.Event)
    interrupted: bool = False


class RedisEvents:
    """A Redis-backed `LiveEvents`, which must be used and closed in one event loop.

    Only the reader task connects and reads, because concurrent reads of one connection fail. Other tasks only
    write subscriptions.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis
        self._channels: dict[str, _Channel] = {}
        self._streaming = set[SessionId]()
        self._stream_text = redis.register_script(read_script("stream_text"))
        self._end_text = redis.register_script(read_script("end_text"))
        self._messages = Gathered[tuple[str, bytes], None](self._send)
        self._pubsub: Any = None
        self._reader: asyncio.Task[None] | None = None
        self._writing = set[asyncio.Task[None]]()
        self._heard_at = 0.0
        self._beat_at = 0.0
        self.failures = 0
        """Number of messages that could not be published."""

    async def ping(self) -> None:
        """Raise Unavailable if Redis does not respond."""
        with translated():
            await self._redis.execute_command("PING")

    async def publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        try:
            await self._publish(session_id, events)
        except (RedisError, OSError) as error:
            self.failures += 1
            _log.warning("Could not publish live events.", session=session_id, error=error)

    async def _publish(self, session_id: SessionId, events: tuple[Event, ...]) -> None:
        channel, message = CHANNEL + session_id, orjson.dumps([_encode(event) for event in events])
        tokens = [event for event in events if event.type == TOKEN]
        if tokens:
            self._streaming.add(session_id)
            await self._stream_text(
                keys=[STREAMED + session_id],
                args=[channel, message, *_piece(tokens), STREAMED_CHARACTERS, STREAMED_KEPT_S],
            )
        elif session_id in self._streaming and any(event.type in ENDINGS for event in events):
            self._streaming.discard(session_id)
            await self._end_text(keys=[STREAMED + session_id], args=[channel, message])
        else:
            await self._messages.add((channel, message))

    async def _send(self, messages: list[tuple[str, bytes]]) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        for channel, message in messages:
            pipeline.publish(channel, message)
        await pipeline.execute()

    async def _read_streamed(self, session_id: SessionId) -> Streamed | None:
        """Return the running turn's streamed text, or None if Redis has no text or is unavailable."""
        try:
            turn_id, text, stamp = await self._redis.hmget(STREAMED + session_id, "turn", "text", "stamp")
        except (RedisError, OSError) as error:
            _log.warning("Could not read streamed text.", session=session_id, error=error)
            return None
        if turn_id is None:
            return None
        payload = {"text": text.decode(), "offset": 0}
        return Streamed(Event(session_id, TOKEN, TurnId(turn_id.decode()), payload), int(stamp))

    @asynccontextmanager
    async def listen(
        self, session_id: SessionId, *, with_streamed: bool = False
    ) -> AsyncGenerator[Subscription]:
        """Yield a subscription. While Redis is unavailable, no events arrive and no errors are raised."""
        name = CHANNEL + session_id
        subscription = Subscription(session_id, self._read_streamed if with_streamed else None)
        joined = name in self._channels
        channel = self._channels.setdefault(name, _Channel())
        channel.listeners.add(subscription)
        try:
            if not joined:
                await self._write("SUBSCRIBE", name)
            await self._confirm(channel)
            yield subscription
        finally:
            await self._leave(name, channel, subscription)

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        await self._disconnect()
        await self._messages.settle()

    async def _confirm(self, channel: _Channel) -> None:
        """Wait up to `SUBSCRIBED_WITHIN_S` seconds until Redis confirms the subscription to the channel."""
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._keep_reading(), name="live events")
        with contextlib.suppress(TimeoutError):  # Redis is unavailable, so the listener reads the log
            async with asyncio.timeout(SUBSCRIBED_WITHIN_S):
                await channel.confirmed.wait()

    async def _leave(self, name: str, channel: _Channel, subscription: Subscription) -> None:
        channel.listeners.discard(subscription)
        if not channel.listeners and self._channels.get(name) is channel:
            del self._channels[name]
            await self._write("UNSUBSCRIBE", name)

    async def _write(self, command: str, *names: str) -> None:
        """Write a subscribe or unsubscribe command, without waiting for the confirmation.

        A separate task writes the command, because redis-py closes a connection whose sender is canceled,
        and all listeners share this connection.
        """
        if self._pubsub is not None:
            writing = asyncio.create_task(self._send_command(self._pubsub, command, names))
            self._writing.add(writing)
            writing.add_done_callback(self._writing.discard)
            await asyncio.shield(writing)

    async def _send_command(self, pubsub: Any, command: str, names: tuple[str, ...]) -> None:
        connection = pubsub.connection
        # Don't touch a broken connection: redis-py would reconnect concurrently with the reader.
        if connection is not None and connection.is_connected:
            with contextlib.suppress(RedisError, OSError):
                await connection.send_command(command, *names, check_health=False)

    async def _keep_reading(self) -> None:
        while True:
            try:
                if self._pubsub is None:
                    await self._connect()
                await self._read()
            except (RedisError, OSError) as error:
                _log.warning("Live events are interrupted.", error=error)
                await self._disconnect()
                await asyncio.sleep(RECONNECT_AFTER_S)

    async def _connect(self) -> None:
        pubsub: Any = self._redis.pubsub()
        try:
            await pubsub.subscribe(HEARTBEAT_CHANNEL)
        except BaseException:
            await pubsub.aclose()
            raise
        pubsub.connection.health_check_interval = 0  # the reply to a health check would be read concurrently
        self._pubsub = pubsub
        self._heard_at = self._beat_at = time.monotonic()
        if self._channels:
            await self._write("SUBSCRIBE", *self._channels)

    async def _disconnect(self) -> None:
        pubsub, self._pubsub = self._pubsub, None
        for channel in self._channels.values():
            channel.confirmed.clear()
            channel.interrupted = True
        if pubsub is not None:
            with contextlib.suppress(RedisError, OSError):
                await pubsub.aclose()

    async def _read(self) -> None:
        """Deliver one message. During silence, send heartbeats and raise an error if they don't return."""
        message = await self._pubsub.get_message(timeout=READ_FOR_S)
        now = time.monotonic()
        if message is not None:
            self._heard_at = now
            self._deliver(message)
        elif now - self._heard_at > SILENT_FOR_S:
            raise RedisConnectionError("no message arrived in time")
        elif now - self._beat_at > HEARTBEAT_EVERY_S:
            self._beat_at = now
            await self._redis.publish(HEARTBEAT_CHANNEL, b"")

    def _deliver(self, message: JsonObject) -> None:
        channel = self._channels.get(message["channel"].decode())
        if channel is None:
            return
        if message["type"] == "subscribe":
            if channel.interrupted:  # messages published during the interruption are lost
                channel.interrupted = False
                for subscription in channel.listeners:
                    subscription.drop()
            channel.confirmed.set()
        elif message["type"] == "message":
            session_id = SessionId(message["channel"].decode().removeprefix(CHANNEL))
            stamp, events = _decode(session_id, message["data"])
            for subscription in channel.listeners:
                for event in events:
                    subscription.push(event, stamp)
                if not events:
                    subscription.nudge()


def _encode(event: Event) -> JsonObject:
    return {
        "type": event.type,
        "turn_id": event.turn_id,
        "payload": event.payload,
        "number": event.number,
    }


def _piece(tokens: list[Event]) -> tuple[str, int, str, int]:
    """Merge consecutive tokens.

    Return their turn, offset and text, and the answer's length so far.
    """
    text = "".join(token.payload["text"] for token in tokens)
    offset = tokens[0].payload["offset"]
    return tokens[0].turn_id or "", offset, text, offset + len(text)


def _decode(session_id: SessionId, message: bytes) -> tuple[int, list[Event]]:
    """Return a message's token stamp (or 0 if it has none) and events."""
    stamp, bracket, entries = message.partition(b"[")
    events = [
        Event(
            session_id,
            entry["type"],
            None if entry["turn_id"] is None else TurnId(entry["turn_id"]),
            entry["payload"],
            entry["number"],
        )
        for entry in orjson.loads(bracket + entries)
    ]
    return int(stamp or 0), events
