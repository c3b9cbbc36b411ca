"""Webhook deliveries: format, signatures and retries (RT-16).

Deliveries are signed according to Standard Webhooks.
"""

import base64
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import orjson
from standardwebhooks import Webhook as Signer

from orchestrator.errors import InvalidInput
from orchestrator.turns.event import Event
from orchestrator.types import JsonObject, SessionId, TenantId

EVENT_TYPE_HEADER: Final = "Parley-Event"
ATTEMPT_HEADER: Final = "Parley-Attempt"

FIRST_RETRY_S: Final = 1.0
LONGEST_RETRY_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Webhook:
    """A destination for events.

    `session_id`: the session to report, or None for all sessions of the tenant. `events`: the event types to
    report, or None for all events in the log.
    """

    webhook_id: str
    tenant_id: TenantId
    url: str
    session_id: SessionId | None = None
    events: tuple[str, ...] | None = None
    created_at: datetime | None = None
    closed_at: datetime | None = None

    def wants(self, event: Event) -> bool:
        return self.events is None or event.type in self.events


@dataclass(frozen=True, slots=True)
class Feed:
    """The progress of delivering one session's events to one webhook.

    `wanted`: the number of the last event to deliver. `delivered`: the number of the last delivered event.
    `given_up_at`: when deliveries were stopped because of failures, or None. An operator can resume deliveries.
    """

    webhook_id: str
    session_id: SessionId
    tenant_id: TenantId
    wanted: int
    delivered: int
    attempts: int = 0
    error: str | None = None
    failing_since: datetime | None = None
    given_up_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class HeldFeed:
    """A feed that this process has claimed for a limited time. `token`: identifies the claim."""

    webhook: Webhook
    session_id: SessionId
    delivered: int
    attempts: int
    token: int
    secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Delivered:
    """A delivery that the receiver confirmed."""


@dataclass(frozen=True, slots=True)
class DeliveryFailed:
    """A delivery that the receiver did not confirm. `final`: True if the receiver unsubscribed."""

    why: str
    final: bool = False


DeliveryResult: TypeAlias = Delivered | DeliveryFailed


def check_url(url: str) -> str:
    """Return a webhook URL's host. Raise InvalidInput if the URL is not valid."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"The URL is not valid: {error}.", field="webhook") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise InvalidInput("A webhook needs an http:// or https:// URL with a host.", field="webhook")
    if parts.username or parts.password or parts.fragment:
        raise InvalidInput("A webhook's URL can't have a user, password or fragment.", field="webhook")
    return host


def event_id(event: Event) -> str:
    """Return the event's ID, which is the same in all deliveries, so that receivers can detect duplicates."""
    return f"{event.session_id}:{event.number}"


def delivery_body(tenant_id: TenantId, event: Event) -> bytes:
    body: JsonObject = {
        "id": event_id(event),
        "type": event.type,
        "tenant_id": tenant_id,
        "session_id": event.session_id,
        "turn_id": event.turn_id,
        "number": event.number,
        "payload": event.payload,
    }
    return orjson.dumps(body)


def new_secret() -> str:
    """Generate a signing secret in Standard Webhooks format, from 32 random bytes."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"


def signed_headers(keys: Sequence[str], event_id: str, body: bytes, now: float) -> dict[str, str]:
    """Return the Standard Webhooks headers: ID, timestamp and a signature for each active secret."""
    at = datetime.fromtimestamp(int(now), UTC)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(int(now)),
        "webhook-signature": " ".join(Signer(key).sign(event_id, at, body.decode()) for key in keys),
    }


def retry_after(attempts: int) -> float:
    """Return the delay in seconds after failed attempt number `attempts`: exponential backoff with jitter.

    The delay before jitter is at most `LONGEST_RETRY_S`.
    """
    delay = min(LONGEST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(attempts - 1, 20))
    return delay * random.uniform(0.75, 1.25)
