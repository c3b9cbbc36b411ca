"""Webhooks, the progress of their deliveries, and their secrets (RT-16)."""

import base64
import secrets
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from orchestrator.errors import InvalidInput
from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TenantId


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


def new_secret() -> str:
    """Generate a signing secret in Standard Webhooks format, from 32 random bytes."""
    return f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}"
