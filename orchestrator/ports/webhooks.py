"""Webhooks: who is told, how far each was told, what waits for an operator (RT-16)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from orchestrator.turns.event import Event
from orchestrator.turns.webhook import Feed, HeldFeed, Webhook
from orchestrator.types import SessionId, TenantId


class Webhooks(Protocol):
    """As operators see them."""

    async def create(
        self,
        tenant_id: TenantId,
        url: str,
        *,
        session_id: SessionId | None = None,
        events: tuple[str, ...] | None = None,
    ) -> Webhook:
        """Tell a session's events, or all sessions', from now on. Raises InvalidInput, NotFound."""
        ...

    async def list(self, tenant_id: TenantId, *, limit: int = 100) -> list[Webhook]:
        """Newest first, without those that were closed."""
        ...

    async def close(self, tenant_id: TenantId, webhook_id: str) -> None:
        """Tell it nothing more. Raises NotFound."""
        ...

    async def failing(self, tenant_id: TenantId, *, limit: int = 100) -> list[Feed]:
        """Feeds that fail or were given up, those that fail longest first."""
        ...

    async def retry(self, tenant_id: TenantId, webhook_id: str, session_id: SessionId | None = None) -> int:
        """Deliver again from where it stopped, at once; how many feeds that concerns."""
        ...

    async def rotate_secret(self, tenant_id: TenantId) -> str:
        """A new secret. Deliveries are signed with it and with the one before it; older ones are gone."""
        ...


class WebhookFeeds(Protocol):
    """As the delivering process sees them."""

    async def take_due(
        self, *, limit: int, hold_s: float, per_host: int, busy_hosts: Collection[str] = ()
    ) -> list[HeldFeed]:
        """Feeds with something to deliver now, held for this process: some of each host, of busy ones none."""
        ...

    async def events(self, feed: HeldFeed, *, after: int, limit: int) -> list[Event]:
        """What is to be delivered next: events with numbers above `after`, in order."""
        ...

    async def delivered(self, feed: HeldFeed, number: int, *, hold_s: float) -> bool:
        """All events up to `number` arrived; False when the hold was lost, so that others go on."""
        ...

    async def finish(self, feed: HeldFeed) -> None:
        """Nothing more to deliver just now, or another process may go on."""
        ...

    async def failed(self, feed: HeldFeed, error: str, *, again_s: float, give_up_s: float) -> bool:
        """Try again later, or give up what has failed for too long; whether it was given up."""
        ...
