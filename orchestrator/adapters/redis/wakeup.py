"""Wake-ups over a sorted set of ready sessions; a Celery message only when somebody must be woken.

While runners are awake a turn costs no Celery message: they take from the set.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError

from orchestrator.adapters.redis.client import Command, Gathered, KeptConnection, read_script
from orchestrator.adapters.redis.events import CHANNEL
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.types import SessionId, new_id

READY = "parley:ready"
AWAKE = "parley:awake"
WOKEN = "parley:last_woken"

AWAKE_FOR_MS = 3000
ATTEND_EVERY_S = 1.0
WAKE_AT_MOST_EVERY_MS = 100
WAKE_AT_LEAST_EVERY_MS = 1000
"""So seldom at last, where a backlog remains and messages wake nobody: all are awake."""
BACKLOG = 2

_OFFER = read_script("offer")
_OFFER_DIGEST = hashlib.sha1(_OFFER.encode(), usedforsecurity=False).hexdigest()  # as Redis names scripts

_log = get_logger(__name__)

_Offer = tuple[tuple[SessionId, ...], bool]
"""Sessions, and whether somebody is to be woken in any case."""

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
        waiting = waiting or redis
        self._send = send
        self._runner = new_id("runner")
        self._attended_at = 0.0
        self._attend = redis.register_script(read_script("attend"))
        self._retire = redis.register_script(read_script("retire"))
        self._offers = Gathered[_Offer, SessionId | None](self._leave)
        self._leaving, self._taking = KeptConnection(redis), KeptConnection(waiting)
        self.failures = 0
        """Hints that could not be left since the start."""

    async def offer(self, *session_ids: SessionId, nobody_came: bool = False) -> bool:
        """Put sessions among the ready ones; wake a worker when none keeps up."""
        try:
            wake = await self._offers.add((session_ids, nobody_came))
            if wake is not None and wake in session_ids:
                await self._send(wake)
        except (RedisError, OSError, Unavailable) as error:
            self.failures += 1
            _log.warning("A wake-up could not be left.", sessions=len(session_ids), error=error)
            return False
        return True

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        """Say that we are awake (once a second), then in one round trip wait for one session and take more."""
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

    async def _leave(self, offers: list[_Offer]) -> SessionId | None:
        """Leave offers in one round trip; the session for which somebody has to be woken."""
        session_ids = [session_id for several, _ in offers for session_id in several]
        backlog = 0 if any(nobody_came for _, nobody_came in offers) else BACKLOG
        limits = WAKE_AT_MOST_EVERY_MS, WAKE_AT_LEAST_EVERY_MS, backlog
        arguments = (*limits, CHANNEL, *session_ids)
        wake = await self._leaving.run_script(_OFFER, _OFFER_DIGEST, (READY, AWAKE, WOKEN), arguments)
        return session_ids[0] if wake else None

    async def _take(self, limit: int, timeout_s: float) -> list[SessionId]:
        if time.monotonic() - self._attended_at >= ATTEND_EVERY_S:
            await self._attend(keys=[AWAKE], args=[self._runner, AWAKE_FOR_MS])
            self._attended_at = time.monotonic()
        commands: list[Command] = [("BZPOPMIN", READY, timeout_s)]
        if limit > 1:
            commands.append(("ZPOPMIN", READY, limit - 1))
        first, *rest = await self._taking.run(commands)
        taken = [] if first is None else [first[1]]
        taken.extend(member for several in rest for member in _members_of(several))
        return [SessionId(member.decode()) for member in taken]


def _members_of(popped: list[Any]) -> list[bytes]:
    """Members without their scores: pairs, or one after the other in the older protocol."""
    return popped[::2] if popped and isinstance(popped[0], bytes) else [member for member, _ in popped]
