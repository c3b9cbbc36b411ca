"""Prevent one tenant's burst of submissions from delaying other tenants (RT-30).

A Redis queue is first in, first out. While the queue is long, one worker at a time reads new messages, and
moves the messages of tenants that have no waiting messages to the front. At intervals, the worker reads the
whole queue, and moves the oldest messages of all tenants, except the tenant with the most messages, to the
front. The order within a tenant is kept. RabbitMQ queues stay unchanged.
"""

import asyncio
import base64
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson
from redis.asyncio import Redis

from orchestrator.adapters.redis.client import read_script, translated
from orchestrator.ports.tasks import SUBMISSIONS
from orchestrator.types import DEFAULT_TENANT

LOOK_EVERY_S: Final = 0.05
LOOK_WHEN_SHORT_EVERY_S: Final = 0.25
LOOK_WHEN_IDLE_EVERY_S: Final = 2.0
READ_ALL_EVERY_S: Final = 0.5
READ_ALL_SHARE: Final = 10
"""Minimum interval between full reads of the queue, as a multiple of a read's duration."""
LONG: Final = 64
"""Minimum queue length for rearranging, in messages. Shorter queues are consumed in order of arrival."""
MOST_SEEN: Final = 20_000
"""Maximum number of messages examined in a full read of the queue, oldest first."""
MOST_NEW: Final = 2000
"""Maximum number of new messages examined per check."""
SHARE: Final = 64
"""Maximum number of messages moved per tenant in a full read of the queue."""
LOOKING: Final = "parley:fair_order"
LOOKING_FOR_MS: Final = 1000


class FairOrder:
    def __init__(self, redis: Redis, consumer: str) -> None:
        self._redis: Any = redis
        self._consumer = consumer.encode()
        self._promote = redis.register_script(read_script("promote"))
        self._newer = redis.register_script(read_script("newer"))
        self._consumed = asyncio.Event()
        self._read_all_at = 0.0
        self._newest: bytes | None = None
        """The newest message that was examined and not moved, or None to read the whole queue next."""
        self._last_moved = b""
        self._tenants: dict[bytes, str] = {}
        self._behind = Counter[str]()
        """Number of messages examined and not moved, by tenant."""

    async def watch(self) -> None:
        """Arrange the queue, then pause if the queue is short or another process arranges it.

        The pause is long if this process consumes no submissions, because the queue is then empty.
        Raises Unavailable.
        """
        self._consumed.clear()
        await self.arrange()
        if self._newest is None:
            await asyncio.sleep(LOOK_WHEN_SHORT_EVERY_S - LOOK_EVERY_S)
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_WHEN_IDLE_EVERY_S):
                    await self._consumed.wait()

    def note_consumed(self) -> None:
        """Signal that this process consumed a submission."""
        self._consumed.set()

    async def arrange(self) -> int:
        """Move messages to the front of the queue and return their number. Raises Unavailable."""
        with translated():
            if await self._redis.llen(SUBMISSIONS) < LONG or not await self._is_ours():
                self._newest, self._tenants = None, {}
                return 0
            if self._newest is None or time.monotonic() >= self._read_all_at:
                return await self._arrange_all()
            return await self._arrange_new(self._newest)

    async def _arrange_all(self) -> int:
        began = time.monotonic()
        waiting: list[bytes] = await self._redis.lrange(SUBMISSIONS, -MOST_SEEN, -1)
        waiting.reverse()
        known = self._tenants
        self._tenants = {message: known.get(message) or read_tenant(message) for message in waiting}
        first = choose_first(waiting, self._tenants)
        moved = 0
        if waiting[: len(first)] != first:
            moved = await self._promote(keys=[SUBMISSIONS], args=[b"", *first])
        self._last_moved = first[-1] if first else b""
        ahead = set(first)
        behind = [message for message in waiting if message not in ahead]
        self._newest = behind[-1] if behind else None
        self._behind = Counter(self._tenants[message] for message in behind)
        now = time.monotonic()
        self._read_all_at = now + max(READ_ALL_EVERY_S, READ_ALL_SHARE * (now - began))
        return moved

    async def _arrange_new(self, newest: bytes) -> int:
        newer: list[bytes] | None = await self._newer(keys=[SUBMISSIONS], args=[newest, MOST_NEW])
        if newer is None:
            self._newest = None
            return 0
        first: list[bytes] = []
        for message in reversed(newer):
            self._tenants[message] = tenant = read_tenant(message)
            if self._behind[tenant]:
                self._behind[tenant] += 1
                self._newest = message
            else:
                first.append(message)
        if not first:
            return 0
        moved = await self._promote(keys=[SUBMISSIONS], args=[self._last_moved, *first])
        self._last_moved = first[-1]
        return moved

    async def _is_ours(self) -> bool:
        """Acquire or extend the lock for arranging the queue, which expires after a second.

        Return True if this process holds the lock.
        """
        taken = await self._redis.set(LOOKING, self._consumer, nx=True, px=LOOKING_FOR_MS)
        if not taken and await self._redis.get(LOOKING) == self._consumer:
            taken = await self._redis.pexpire(LOOKING, LOOKING_FOR_MS)
        return bool(taken)


def choose_first(waiting: Sequence[bytes], tenants: Mapping[bytes, str]) -> list[bytes]:
    """Return the messages to consume first, in order, or an empty list if there is only one tenant.

    `waiting`: messages in their current order. `tenants`: the tenant of each message. The tenant with the
    most messages keeps its place. Up to `SHARE` messages from every other tenant move ahead, round robin.
    """
    of_tenants: defaultdict[str, list[bytes]] = defaultdict(list)
    for message in waiting:
        of_tenants[tenants[message]].append(message)
    if len(of_tenants) < 2:
        return []
    largest = max(of_tenants, key=lambda tenant: len(of_tenants[tenant]))
    others = [messages[:SHARE] for tenant, messages in of_tenants.items() if tenant != largest]
    return [messages[turn] for turn in range(SHARE) for messages in others if turn < len(messages)]


def read_tenant(message: bytes) -> str:
    """Return a message's tenant, or the default tenant if the message is unreadable."""
    try:
        envelope = orjson.loads(message)
        body = envelope["body"]
        if envelope.get("properties", {}).get("body_encoding") == "base64":
            body = base64.b64decode(body)
        tenant = orjson.loads(body)[1].get("tenant_id")
    except (LookupError, TypeError, ValueError, AttributeError):
        return DEFAULT_TENANT
    return tenant if isinstance(tenant, str) else DEFAULT_TENANT
