"""Wake-ups over sorted sets of ready sessions; a Celery message only when somebody must be woken.

While runners are awake a turn costs no Celery message: each takes from a set of its own, of sessions whose state it has
had at hand before, and from the one that is everybody's.
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
KEPT_FOR_ONE = 8
"""So many sessions at most wait for the runner that has had them before."""

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
        self._own = f"{READY}:{self._runner}"
        self._sets = [self._own, READY]
        self._attended_at = 0.0
        self._offer = redis.register_script(read_script("offer"))
        self._attend = self._waiting.register_script(read_script("attend"))
        self._retire = redis.register_script(read_script("retire"))
        self.failures = 0
        """Hints that could not be left since the start."""

    async def offer(self, *session_ids: SessionId, nobody_came: bool = False) -> bool:
        """Put sessions among the ready ones; wake a worker when none keeps up."""
        bounds = (0, 0) if nobody_came else (BACKLOG, KEPT_FOR_ONE)
        try:
            wake = await self._offer(
                keys=[READY, AWAKE, WOKEN], args=[WAKE_AT_MOST_EVERY_MS, *bounds, CHANNEL, *session_ids]
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
            retired = await self._retire(
                keys=[READY, AWAKE, self._own], args=[self._runner, "1" if force else "0"]
            )
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
        self._sets.reverse()  # by turns first, so that neither waits for ever behind the other
        pipeline.bzmpop(timeout_s, 2, self._sets, min=True, count=limit)
        *_, found = await pipeline.execute()
        if attending:
            self._attended_at = time.monotonic()
        return [] if found is None else [SessionId(member.decode()) for member, _ in found[1]]
