"""Validate message envelopes before the broker library parses them (RT-22).

In Redis, any sender can write any JSON to a queue, and kombu crashes the worker on invalid envelopes. Invalid envelopes
are counted, logged without contents, and dropped.
"""

import base64
import zlib
from queue import Empty
from time import monotonic
from typing import Annotated, Any, ClassVar, Final, Literal

from kombu.transport import TRANSPORT_ALIASES, redis
from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads
from pydantic import BaseModel, Field, StringConstraints, ValidationError
from redis.exceptions import ResponseError

from orchestrator.ports.tasks import SUBMISSIONS
from workers.messages.refused import note_refused
from workers.messages.unacknowledged import BOOK, taken_by

DROPPED: Final = "A malformed message was dropped."

# Errors caused by missing or mistyped message parts. kombu mistakes some of them for a lost connection.
MALFORMED: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    zlib.error,
)

Name = Annotated[str, StringConstraints(max_length=255)]


class _Place(BaseModel):
    exchange: Name = ""
    routing_key: Name | None = None


class _Properties(BaseModel):
    delivery_tag: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    delivery_info: _Place
    body_encoding: Literal["base64"] | None = None
    reply_to: Name | None = None
    correlation_id: Name | None = None
    priority: Annotated[int, Field(ge=0, le=255)] | None = None


class Envelope(BaseModel):
    """A message in a Redis queue."""

    properties: _Properties
    body: str | None = None
    headers: dict[str, Any] | None = None
    content_type: Name | None = Field(default=None, alias="content-type")
    content_encoding: Name | None = Field(default=None, alias="content-encoding")


def find_fault(envelope: object) -> str | None:
    """Return the names of an envelope's invalid parts, or None if the envelope is valid."""
    try:
        sound = Envelope.model_validate(envelope, strict=True)
        if sound.properties.body_encoding is not None:
            base64.b64decode(sound.body or "")
    except ValidationError as error:
        return ", ".join(
            sorted({".".join(map(str, fault["loc"][:2])) or "envelope" for fault in error.errors()})
        )
    except ValueError:
        return "body"
    return None


class _Judged(redis.Channel):
    """A Redis channel that only forwards valid envelopes.

    A channel that only consumes submissions loses no message if its process is killed: Redis atomically moves
    each delivered message to a separate list, until the consumer has recorded the message.
    """

    _unsure = True  # True if Redis may have delivered a message that this channel has not read

    @property
    def _moves(self) -> bool:
        return self.active_queues == [SUBMISSIONS] and self.unacked_key.startswith(BOOK)

    def _brpop_start(self, timeout: Any = None) -> None:
        if not self._moves:
            super()._brpop_start(timeout)
            return
        taken = taken_by(self.unacked_key)
        if self._unsure:
            with self.conn_or_acquire() as client:
                while client.lmove(taken, SUBMISSIONS, "RIGHT", "RIGHT"):
                    pass
            self._unsure = False
        connection = self.client.connection
        self._in_poll, self._brpop_sent_at = connection, monotonic()
        connection.send_command("BLMOVE", SUBMISSIONS, taken, "RIGHT", "LEFT", timeout or self.brpop_timeout)

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return self._read_moved(**options) if self._moves else super()._brpop_read(**options)
        except MALFORMED as error:  # invalid JSON
            note_refused(DROPPED, None, type(error).__name__)
            return True

    def _read_moved(self, **options: Any) -> bool:
        try:
            item = self.client.parse_response(self.client.connection, "BLMOVE", **options)
        except self.connection_errors:
            self._unsure = True
            self.client.connection.disconnect()
            raise
        finally:
            self._in_poll = None
        if item is None:
            raise Empty
        try:
            self.connection._deliver(loads(bytes_to_str(item)), SUBMISSIONS)  # noqa: SLF001 - as kombu does
        finally:
            with self.conn_or_acquire() as client:
                client.delete(taken_by(self.unacked_key))
        return True


class _Judging:
    """A transport that checks each envelope before it creates a message.

    A server that rejects writes (a replica, a full disk, too few replicas) counts as unavailable (RT-34).
    """

    connection_errors: ClassVar = (*redis.Transport.connection_errors, ResponseError)

    def _deliver(self, message: Any, queue: str) -> None:
        fault = find_fault(message)
        if fault is None:
            super()._deliver(message, queue)  # type: ignore[misc]
        else:
            note_refused(DROPPED, queue, fault)


class SentinelChannel(_Judged, redis.SentinelChannel): ...


class Transport(_Judging, redis.Transport):
    Channel = _Judged


class SentinelTransport(_Judging, redis.SentinelTransport):
    Channel = SentinelChannel


def validate_envelopes() -> None:
    """Validate envelopes on all of this process's connections to a Redis broker."""
    for scheme, transport in (("redis", Transport), ("rediss", Transport), ("sentinel", SentinelTransport)):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{transport.__name__}"
