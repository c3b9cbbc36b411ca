"""Judges the envelopes of messages before the broker's library builds anything from them (RT-22).

With Redis as the broker an envelope is JSON that any sender wrote, and a library that takes its parts as they
are ends the worker over a wrong one. What is no envelope is counted and logged without its contents, and gone.
"""

from __future__ import annotations

import base64
import zlib
from typing import Annotated, Any, Final, Literal

from kombu.transport import TRANSPORT_ALIASES, redis
from pydantic import BaseModel, Field, StringConstraints, ValidationError

from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import MESSAGES_REFUSED

_log = get_logger(__name__)

# Errors from messages whose parts are missing, or of another type; kombu takes some for a lost connection.
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
    """Where a message was sent to."""

    exchange: Name = ""
    routing_key: Name | None = None


class _Properties(BaseModel):
    """What the library asks of a message's properties."""

    delivery_tag: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    delivery_info: _Place
    body_encoding: Literal["base64"] | None = None
    reply_to: Name | None = None
    correlation_id: Name | None = None
    priority: Annotated[int, Field(ge=0, le=255)] | None = None


class Envelope(BaseModel):
    """A message as it lies in a queue of Redis."""

    properties: _Properties
    body: str | None = None
    headers: dict[str, Any] | None = None
    content_type: Name | None = Field(default=None, alias="content-type")
    content_encoding: Name | None = Field(default=None, alias="content-encoding")


def find_fault(envelope: object) -> str | None:
    """Say which part of an envelope is wrong, without its contents; None for a sound one."""
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


def refuse(queue: str, why: str) -> None:
    """Count and log a message that was thrown away."""
    MESSAGES_REFUSED.labels(queue).inc()
    _log.error("A message that is none was dropped.", queue=queue, wrong=why)


class _Judged:
    """A channel of Redis that hands on sound envelopes only."""

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[misc]
        except MALFORMED as error:  # bytes that are no JSON
            refuse("unknown", type(error).__name__)
            return True


class _Judging:
    """A transport that looks at each envelope before a message is made of it."""

    def _deliver(self, message: Any, queue: str) -> None:
        fault = find_fault(message)
        if fault is None:
            super()._deliver(message, queue)  # type: ignore[misc]
        else:
            refuse(queue, fault)


class Channel(_Judged, redis.Channel): ...


class SentinelChannel(_Judged, redis.SentinelChannel): ...


class Transport(_Judging, redis.Transport):
    Channel = Channel


class SentinelTransport(_Judging, redis.SentinelTransport):
    Channel = SentinelChannel


def judge_envelopes() -> None:
    """Have this process's connections to a broker judge what they receive."""
    for scheme, transport in (("redis", Transport), ("rediss", Transport), ("sentinel", SentinelTransport)):
        TRANSPORT_ALIASES[scheme] = f"{__name__}:{transport.__name__}"
