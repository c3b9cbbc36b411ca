"""Wake-ups through a sorted set of ready sessions that serves tenants in turn.

Awake runners take sessions from the set. Usually, a Celery message is sent only if they can't keep up or none is awake.
"""

import time
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from orchestrator.adapters.redis.client import Gathered, read_script
from orchestrator.adapters.redis.events import CHANNEL
from orchestrator.errors import Unavailable
from orchestrator.ports.wakeup import OF_ANY_TENANT
from orchestrator.telemetry import get_logger
from orchestrator.types import SessionId, TenantId, new_id

READY = "parley:ready"
AWAKE = "parley:awake"
WOKEN = "parley:last_woken"
PLACES = "parley:ready_places"

AWAKE_FOR_MS = 3000
ATTEND_EVERY_S = 1.0
WAKE_AT_MOST_EVERY_MS = 100
WAKE_AT_LEAST_EVERY_MS = 1000
"""Maximum pause between wake-up messages while a backlog remains, in milliseconds."""
BACKLOG = 2

_log = get_logger(__name__)

_Offer = tuple[tuple[SessionId, ...], TenantId, bool]
"""Sessions, their tenant, and True to wake a worker even without a backlog."""

SendMessage = Callable[[SessionId], Awaitable[None]]
"""A function that sends `orchestrator.run_session`, or raises Unavailable if the broker is not responding."""


class RedisWakeup:
    """A Redis-backed `Wakeup`.

    Args:
        redis: client for short commands.
        waiting: client for the blocking `take`. Its reply timeout exceeds every `timeout_s`. Default: `redis`,
            for processes that don't call `take`.
        send: sends a wake-up message through the broker.
    """

    def __init__(self, redis: Redis, send: SendMessage, *, waiting: Redis | None = None) -> None:
        self._send = send
        self._runner = new_id("runner")
        self._attended_at = 0.0
        self._attend = redis.register_script(read_script("announce"))
        self._retire = redis.register_script(read_script("retire"))
        self._offers = Gathered[_Offer, SessionId | None](self._leave)
        self._offer_script = redis.register_script(read_script("offer"))
        self._waiting: Any = waiting or redis
        self.failures = 0
        """Number of failed calls of `offer`."""

    async def offer(
        self, *session_ids: SessionId, tenant_id: TenantId = OF_ANY_TENANT, nobody_came: bool = False
    ) -> bool:
        try:
            wake = await self._offers.add((session_ids, tenant_id, nobody_came))
            if wake is not None and wake in session_ids:
                await self._send(wake)
        except (RedisError, OSError, Unavailable) as error:
            self.failures += 1
            _log.warning("Could not publish a wake-up.", sessions=len(session_ids), error=error)
            return False
        return True

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        """Return up to `limit` ready sessions. Wait up to `timeout_s` seconds for the first session.

        Report this runner as awake, at most once per second. Raises Unavailable.
        """
        try:
            return await self._take(limit, timeout_s)
        except (RedisError, OSError) as error:
            self._attended_at = 0.0
            raise Unavailable(f"Redis is not responding: {error}") from error

    async def retire(self, *, force: bool = False) -> bool:
        try:
            retired = await self._retire(keys=[READY, AWAKE], args=[self._runner, "1" if force else "0"])
        except (RedisError, OSError) as error:
            # Until the runner's entry expires, a wake-up may be missed. The sweep recovers the affected sessions.
            _log.warning("Could not unregister a runner.", error=error)
            return True
        self._attended_at = 0.0
        return bool(retired)

    async def _leave(self, offers: list[_Offer]) -> SessionId | None:
        """Publish offers in one round trip. Return the session to name in a wake-up message, or None."""
        of_tenants = [(session_id, tenant_id) for several, tenant_id, _ in offers for session_id in several]
        backlog = 0 if any(nobody_came for *_, nobody_came in offers) else BACKLOG
        limits = WAKE_AT_MOST_EVERY_MS, WAKE_AT_LEAST_EVERY_MS, backlog
        arguments = (*limits, CHANNEL, *chain.from_iterable(of_tenants))
        wake = await self._offer_script(keys=[READY, AWAKE, WOKEN, PLACES], args=arguments)
        return of_tenants[0][0] if wake else None

    async def _take(self, limit: int, timeout_s: float) -> list[SessionId]:
        if time.monotonic() - self._attended_at >= ATTEND_EVERY_S:
            await self._attend(keys=[AWAKE], args=[self._runner, AWAKE_FOR_MS])
            self._attended_at = time.monotonic()
        pipeline = self._waiting.pipeline(transaction=False)
        pipeline.bzpopmin(READY, timeout_s)
        if limit > 1:
            pipeline.zpopmin(READY, limit - 1)
        first, *rest = await pipeline.execute()
        taken = [] if first is None else [first[1]]
        taken.extend(member for several in rest for member, _ in several)
        return [SessionId(member.decode()) for member in taken]
