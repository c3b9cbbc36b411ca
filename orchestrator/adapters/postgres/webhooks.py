"""Webhooks in PostgreSQL. Database triggers mark feeds that have pending deliveries.

As with session lanes, a token fences each feed, so that a former holder cannot change the feed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from psycopg.rows import TupleRow
from sqlalchemy import Update, case, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.events import read_events
from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.statements import statement
from orchestrator.adapters.postgres.tables import (
    NOW,
    lanes,
    record_of,
    seconds,
    webhook_feeds,
    webhook_secrets,
    webhooks,
)
from orchestrator.errors import NotFound
from orchestrator.turns.event import Event
from orchestrator.turns.webhook import Feed, HeldFeed, Webhook, check_url, new_secret
from orchestrator.types import SessionId, TenantId, new_id

SECRETS_IN_USE = 2


async def add_webhook(
    connection: AsyncConnection,
    tenant_id: TenantId,
    url: str,
    *,
    session_id: SessionId | None = None,
    events: tuple[str, ...] | None = None,
) -> Webhook:
    """Store a webhook, and create a secret if the tenant has none. Raises InvalidInput for an invalid URL."""
    host = check_url(url)
    known = select(webhook_secrets.c.secret_id).where(webhook_secrets.c.tenant_id == tenant_id).limit(1)
    if (await connection.execute(known)).one_or_none() is None:
        await _add_secret(connection, tenant_id)
    webhook = Webhook(new_id("webhook"), tenant_id, url, session_id, events)
    await connection.execute(
        insert(webhooks).values(
            webhook_id=webhook.webhook_id,
            tenant_id=tenant_id,
            session_id=session_id,
            url=url,
            host=host,
            events=None if events is None else list(events),
        )
    )
    return webhook


class PostgresWebhooks:
    """Webhook management for operators. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self,
        tenant_id: TenantId,
        url: str,
        *,
        session_id: SessionId | None = None,
        events: tuple[str, ...] | None = None,
    ) -> Webhook:
        """Subscribe a URL to a session's future events. Default: events from all the tenant's sessions.

        `events`: the event types to deliver. Default: all types. Raises InvalidInput for an invalid
        URL, or NotFound if the session doesn't exist or is closed.
        """
        concerned = update(lanes).where(lanes.c.tenant_id == tenant_id, lanes.c.closed.is_(False))
        if session_id is not None:
            concerned = concerned.where(lanes.c.session_id == session_id)
        async with self._database.transaction() as connection:
            webhook = await add_webhook(connection, tenant_id, url, session_id=session_id, events=events)
            touched = await connection.execute(concerned.values(has_webhook=True))
            if session_id is not None and touched.rowcount == 0:
                raise NotFound("session", session_id)
        return webhook

    async def list(self, tenant_id: TenantId, *, limit: int = 100) -> list[Webhook]:
        """Return webhooks that have not been closed, newest first."""
        query = (
            select(webhooks)
            .where(webhooks.c.tenant_id == tenant_id, webhooks.c.closed_at.is_(None))
            .order_by(webhooks.c.created_at.desc())
            .limit(limit)
        )
        return [record_of(Webhook, row) for row in await self._database.read_all(query)]

    async def close(self, tenant_id: TenantId, webhook_id: str) -> None:
        """Close a webhook, and discard its pending deliveries. Raises NotFound."""
        closing = (
            update(webhooks)
            .where(webhooks.c.webhook_id == webhook_id, webhooks.c.tenant_id == tenant_id)
            .values(closed_at=func.coalesce(webhooks.c.closed_at, NOW))
        )
        async with self._database.transaction() as connection:
            if (await connection.execute(closing)).rowcount == 0:
                raise NotFound("webhook", webhook_id)
            await connection.execute(delete(webhook_feeds).where(webhook_feeds.c.webhook_id == webhook_id))

    async def failing(self, tenant_id: TenantId, *, limit: int = 100) -> list[Feed]:
        """Return failing and abandoned feeds, longest-failing first."""
        query = (
            select(webhook_feeds)
            .where(webhook_feeds.c.tenant_id == tenant_id, webhook_feeds.c.failing_since.is_not(None))
            .order_by(webhook_feeds.c.failing_since)
            .limit(limit)
        )
        return [record_of(Feed, row) for row in await self._database.read_all(query)]

    async def retry(self, tenant_id: TenantId, webhook_id: str, session_id: SessionId | None = None) -> int:
        """Retry a webhook's failing and abandoned feeds immediately. Return how many there are. Raises NotFound."""
        named = select(webhooks.c.webhook_id).where(
            webhooks.c.webhook_id == webhook_id, webhooks.c.tenant_id == tenant_id
        )
        if await self._database.read_one(named) is None:
            raise NotFound("webhook", webhook_id)
        again = update(webhook_feeds).where(
            webhook_feeds.c.tenant_id == tenant_id,
            webhook_feeds.c.webhook_id == webhook_id,
            webhook_feeds.c.failing_since.is_not(None),
        )
        if session_id is not None:
            again = again.where(webhook_feeds.c.session_id == session_id)
        again = again.values(due_at=NOW, failing_since=NOW, given_up_at=None, attempts=0)
        return await self._database.write(again)

    async def rotate_secret(self, tenant_id: TenantId) -> str:
        """Create and return a secret, which signs deliveries together with the previous secret.

        Delete older secrets.
        """
        async with self._database.transaction() as connection:
            secret = await _add_secret(connection, tenant_id)
            mine = webhook_secrets.c.tenant_id == tenant_id
            newest_first = webhook_secrets.c.created_at.desc()
            kept = (
                select(webhook_secrets.c.secret_id).where(mine).order_by(newest_first).limit(SECRETS_IN_USE)
            )
            await connection.execute(
                delete(webhook_secrets).where(mine, webhook_secrets.c.secret_id.not_in(kept))
            )
        return secret


class PostgresWebhookFeeds:
    """Webhook feeds, for processes that deliver events. Every method can raise Unavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def take_due(
        self, *, limit: int, hold_s: float, per_host: int, busy_hosts: Collection[str] = ()
    ) -> list[HeldFeed]:
        """Claim up to `limit` feeds with due deliveries, for `hold_s` seconds.

        Claim at most `per_host` feeds per host, and none for `busy_hosts`.
        """
        arguments = {
            "limit": limit,
            "hold_s": hold_s,
            "per_host": per_host,
            "busy_hosts": list(busy_hosts),
            "secrets": SECRETS_IN_USE,
        }
        rows = await self._database.fetch_all(statement("take_due_feeds"), arguments)
        return [_held_feed(row) for row in rows]

    async def events(self, feed: HeldFeed, *, after: int, limit: int) -> list[Event]:
        """Return up to `limit` of the session's events with numbers above `after`, in order."""
        return await read_events(self._database, feed.session_id, after=after, limit=limit)

    async def delivered(self, feed: HeldFeed, number: int, *, hold_s: float) -> bool:
        """Record that events up to `number` were delivered, and hold the feed for another `hold_s` seconds.

        Return False if another process has claimed the feed.
        """
        return await self._change(
            feed,
            delivered=number,
            attempts=0,
            failing_since=None,
            error=None,
            held_until=NOW + seconds(hold_s),
        )

    async def finish(self, feed: HeldFeed) -> None:
        """Release a feed. If further events have arrived, the feed is due again immediately."""
        kept = webhook_feeds.c
        due = case((kept.wanted > kept.delivered, NOW), else_=None)
        await self._change(feed, held_until=None, due_at=due)

    async def failed(self, feed: HeldFeed, error: str, *, again_s: float, give_up_s: float) -> bool:
        """Record a failed delivery, and release the feed.

        Retry after `again_s` seconds, or abandon a feed that has failed for `give_up_s` seconds. Return True
        if the feed was abandoned.
        """
        kept = webhook_feeds.c
        since = func.coalesce(kept.failing_since, NOW)
        over = since <= NOW - seconds(give_up_s)
        changing = (
            _held(feed)
            .values(
                attempts=kept.attempts + 1,
                error=error,
                failing_since=since,
                held_until=None,
                given_up_at=case((over, NOW), else_=None),
                due_at=case((over, None), else_=NOW + seconds(again_s)),
            )
            .returning(kept.given_up_at)
        )
        row = await self._database.read_one(changing)
        return row is not None and row.given_up_at is not None

    async def _change(self, feed: HeldFeed, **values: Any) -> bool:
        return await self._database.write(_held(feed).values(values)) == 1


def _held_feed(row: TupleRow) -> HeldFeed:
    webhook_id, tenant_id, url, of_session, events, created_at, closed_at, *of_feed = row
    events = None if events is None else tuple(events)
    webhook = Webhook(webhook_id, tenant_id, url, of_session, events, created_at, closed_at)
    session_id, delivered, attempts, token, signing = of_feed
    return HeldFeed(webhook, session_id, delivered, attempts, token, tuple(signing))


def _held(feed: HeldFeed) -> Update:
    """Return an update that applies only while the caller holds the feed."""
    kept = webhook_feeds.c
    return update(webhook_feeds).where(
        kept.webhook_id == feed.webhook.webhook_id,
        kept.session_id == feed.session_id,
        kept.token == feed.token,
    )


async def _add_secret(connection: AsyncConnection, tenant_id: TenantId) -> str:
    secret = new_secret()
    await connection.execute(
        insert(webhook_secrets).values(tenant_id=tenant_id, secret_id=new_id("secret"), secret=secret)
    )
    return secret
