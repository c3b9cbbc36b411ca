"""A tenant with webhooks, and their receiver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from orchestrator.adapters.postgres.lanes.lane import PostgresLane
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.sessions import PostgresSessions
from orchestrator.adapters.postgres.turns.inbox import PostgresInbox
from orchestrator.adapters.postgres.webhooks import PostgresWebhookFeeds, PostgresWebhooks
from orchestrator.turns import webhook as rules
from orchestrator.types import SessionId, TenantId
from tests.contract.factories import commit_for, submission
from workers.webhook_posts import WebhookPosts
from workers.webhooks import WebhookSender

LOOPBACK = ("127.0.0.0/8",)
DAYS = 86_400.0


@dataclass
class Post:
    """A tenant with sessions and turns, and its worker's webhook senders."""

    url: str
    database: Database
    lane: PostgresLane
    tenant: TenantId
    secret: str = ""
    give_up_s: float = DAYS

    @property
    def webhooks(self) -> PostgresWebhooks:
        return PostgresWebhooks(self.database)

    async def session(self, webhook: str | None = None) -> SessionId:
        made = await PostgresSessions(self.database).create(self.tenant, "travel", webhook=webhook)
        return made.session_id

    async def talk(self, session: SessionId, turns: int = 1) -> None:
        """Run turns with three events each: accepted, started, answer."""
        inbox = PostgresInbox(self.database)
        for _ in range(turns):
            await inbox.submit(submission(self.tenant, session))
            lease = await self.lane.claim(session)
            assert lease is not None
            await self.lane.commit(lease, commit_for(lease))

    @asynccontextmanager
    async def worker(
        self, *, networks: tuple[str, ...] = LOOPBACK, timeout_s: float = 5.0, **options: Any
    ) -> AsyncIterator[WebhookSender]:
        """Run a worker with a short polling interval."""
        posts = WebhookPosts(networks, timeout_s=timeout_s, **options)
        sender = WebhookSender(PostgresWebhookFeeds(self.database), posts, give_up_s=self.give_up_s)

        async def keep_sending() -> None:
            while True:
                await sender.send_due()
                await asyncio.sleep(0.05)

        sending = asyncio.create_task(keep_sending())
        try:
            yield sender
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await sender.close()
            await posts.aclose()

    async def failing(self, *, error: str) -> list[rules.Feed]:
        """Wait until a feed has failed with this error, and return the failing feeds."""
        async with asyncio.timeout(20):
            while True:
                feeds = await self.webhooks.failing(self.tenant)
                if any(error in (feed.error or "") for feed in feeds):
                    return feeds
                await asyncio.sleep(0.02)
