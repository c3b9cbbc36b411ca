"""Wake-ups over a sorted set of ready sessions; a Celery message only when somebody must be woken.

While runners are awake a turn costs no Celery message: they take from the set.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from orchestrator.adapters.redis.client import read_script
from orchestrator.adapters.redis.events import CHANNEL
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.types import SessionId, new_id

READY = "parley:ready"
AWAKE = "parley:awake"
WOKEN = "parley:woken"

AWAKE_FOR_MS = 3000
ATTEND_EVERY_S = 1.0
WAKE_AT_MOST_EVERY_MS = 100
BACKLOG = 2

_log = get_logger(__name__)

SendMessage = Callable[[SessionId], Awaitable[None]]
"""Sends `orchestrator.run_session`; raises Unavailable when the broker does not answer."""


class RedisWakeup:
    """Implements `ports.wakeup.Wakeup`.

    Args:
        redis: for short commands.
        waiting: for the blocking take; its reply time-out exceeds every `timeout_s` used. Only
            runners need it.
        send: how a wake-up message reaches a worker.
    """

    def __init__(self, redis: Redis, send: SendMessage, *, waiting: Redis | None = None) -> None:
        self._redis = redis
        self._waiting = waiting or redis
        self._send = send
        self._runner = new_id("runner")
        self._attended_at = 0.0
        self._offer = redis.register_script(read_script("offer"))
        self._attend = self._waiting.register_script(read_script("attend"))
        self._retire = redis.register_script(read_script("retire"))
        self.failures = 0
        """Hints that could not be left since the start."""

    async def offer(self, *session_ids: SessionId, nobody_came: bool = False) -> bool:
        """Put sessions among the ready ones; wake a worker when none keeps up."""
        backlog = 0 if nobody_came else BACKLOG
        try:
            wake = await self._offer(
                keys=[READY, AWAKE, WOKEN], args=[WAKE_AT_MOST_EVERY_MS, backlog, CHANNEL, *session_ids]
            )
            if wake:
                await self._send(session_ids[0])
        except (RedisError, OSError, Unavailable) as error:
            self.failures += 1
            _log.warning("A wake-up could not be left.", sessions=len(session_ids), error=error)
            return False
        return True

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        """One round trip: say that we are awake (once a second), wait for one session, take more."""
        try:
            return await self._take(limit, timeout_s)
        except (TimeoutError, RedisError, OSError) as error:
            self._attended_at = 0.0
            raise Unavailable(f"Redis does not answer: {error}") from error

    async def retire(self, *, force: bool = False) -> bool:
        """Take this runner off the list of those awake."""
        try:
            retired = await self._retire(keys=[READY, AWAKE], args=[self._runner, "1" if force else "0"])
        except (RedisError, OSError) as error:
            # The entry runs out by itself; until then a wake-up may be missed, which the sweep finds.
            _log.warning("A runner could not retire.", error=error)
            return True
        self._attended_at = 0.0
        return bool(retired)

    async def _take(self, limit: int, timeout_s: float) -> list[SessionId]:
        pipeline: Any = self._waiting.pipeline(transaction=False)
        attending = time.monotonic() - self._attended_at >= ATTEND_EVERY_S
        if attending:
            await self._attend(keys=[AWAKE], args=[self._runner, AWAKE_FOR_MS], client=pipeline)
        pipeline.bzpopmin(READY, timeout_s)
        if limit > 1:
            pipeline.zpopmin(READY, limit - 1)
        replies: list[Any] = await pipeline.execute()
        if attending:
            self._attended_at = time.monotonic()
            replies = replies[1:]
        first, *rest = replies
        taken = [] if first is None else [first[1]]
        taken.extend(member for member, _ in (rest[0] if rest else ()))
        return [SessionId(member.decode()) for member in taken]
