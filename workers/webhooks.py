"""Deliver events to webhooks, in order per session, with retries until confirmed (RT-16).

A feed is one session's events for one webhook. A separate asyncio task delivers each feed, so a slow receiver
delays only its own feed. At most `PER_HOST` deliveries to one host run concurrently.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final, Protocol

from orchestrator.adapters.postgres.webhooks import PostgresWebhookFeeds
from orchestrator.errors import ParleyError
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.metrics import WEBHOOK_POSTS, WEBHOOKS_GIVEN_UP
from orchestrator.turns.event import Event
from orchestrator.turns.webhook import HeldFeed, check_url
from workers.webhook_posts import (
    ATTEMPT_HEADER,
    EVENT_TYPE_HEADER,
    Delivered,
    DeliveryFailed,
    DeliveryResult,
    delivery_body,
    event_id,
    retry_after,
    signed_headers,
)

LOOK_EVERY_S: Final = 0.5
CAPACITY: Final = 64
PER_HOST: Final = 8
BATCH: Final = 20
AT_ONCE: Final = 200
"""Maximum number of events delivered from one feed before other feeds are served."""
HOLD_S: Final = 60.0

_log = get_logger(__name__)


class Posts(Protocol):
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryResult: ...


class WebhookSender:
    """A component that delivers due events to webhooks.

    Args:
        give_up_s: time in seconds after which a failing feed waits for an operator.
    """

    def __init__(
        self, feeds: PostgresWebhookFeeds, posts: Posts, *, give_up_s: float, capacity: int = CAPACITY
    ) -> None:
        self._feeds = feeds
        self._posts = posts
        self._give_up_s = give_up_s
        self._capacity = capacity
        self._running: dict[asyncio.Task[None], str] = {}

    async def send_due(self) -> None:
        """Start due deliveries without waiting for them."""
        free = self._capacity - len(self._running)
        if free <= 0:
            return
        counts = Counter(self._running.values())
        busy = [host for host, count in counts.items() if count >= PER_HOST]
        for feed in await self._feeds.take_due(limit=free, hold_s=HOLD_S, per_host=PER_HOST, busy_hosts=busy):
            task = asyncio.create_task(self._deliver(feed))
            self._running[task] = check_url(feed.webhook.url)
            task.add_done_callback(self._ended)

    async def settled(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    async def close(self) -> None:
        """Cancel running deliveries. Another process will repeat them."""
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:  # the feed's hold will expire, and a worker will claim the feed again
            _log.warning("A webhook delivery failed.", error=error)

    async def _deliver(self, feed: HeldFeed) -> None:
        try:
            await self._deliver_events(feed)
        except asyncio.CancelledError:
            await asyncio.shield(self._release_feed(feed))
            raise

    async def _release_feed(self, feed: HeldFeed) -> None:
        try:
            await self._feeds.finish(feed)
        except ParleyError as error:
            _log.info("Could not release a webhook feed; its hold will expire.", error=error)

    async def _deliver_events(self, feed: HeldFeed) -> None:
        """Deliver up to `AT_ONCE` events of a feed, in order, until a delivery fails or the hold is lost."""
        number, attempts = feed.delivered, feed.attempts
        for _ in range(AT_ONCE // BATCH):
            events = await self._feeds.events(feed, after=number, limit=BATCH)
            for event in events:
                assert event.number is not None
                number = event.number
                if not feed.webhook.wants(event):
                    continue
                outcome = await self._post(feed, event, attempts + 1)
                if isinstance(outcome, DeliveryFailed):
                    await self._fail(feed, outcome, attempts + 1)
                    return
                attempts = 0
                if not await self._feeds.delivered(feed, number, hold_s=HOLD_S):
                    return
            if events and not await self._feeds.delivered(feed, number, hold_s=HOLD_S):
                return
            if len(events) < BATCH:
                break
        await self._feeds.finish(feed)

    async def _post(self, feed: HeldFeed, event: Event, attempt: int) -> Delivered | DeliveryFailed:
        body = delivery_body(feed.webhook.tenant_id, event)
        headers = {
            "Content-Type": "application/json",
            **signed_headers(feed.secrets, event_id(event), body, time.time()),
            EVENT_TYPE_HEADER: event.type,
            ATTEMPT_HEADER: str(attempt),
        }
        outcome = await self._posts.post(feed.webhook.url, headers, body)
        WEBHOOK_POSTS.labels("arrived" if isinstance(outcome, Delivered) else "failed").inc()
        return outcome

    async def _fail(self, feed: HeldFeed, failure: DeliveryFailed, attempts: int) -> None:
        give_up_s = 0.0 if failure.final else self._give_up_s
        over = await self._feeds.failed(feed, failure.why, again_s=retry_after(attempts), give_up_s=give_up_s)
        if over:
            WEBHOOKS_GIVEN_UP.inc()
        if over or attempts == 1:
            message = (
                "A webhook was abandoned."
                if over
                else "A webhook's receiver failed; delivery will be retried."
            )
            _log.warning(
                message, webhook=feed.webhook.webhook_id, session_id=feed.session_id, error=failure.why
            )
