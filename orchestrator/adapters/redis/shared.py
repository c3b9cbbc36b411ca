"""What all processes count and keep together for a while: limits, tickets, answers of tools, what models cost."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from redis.asyncio import Redis

from orchestrator.adapters.redis.client import read_script, translated
from orchestrator.ports.access import Limit
from orchestrator.ports.spending import Spent
from orchestrator.turns.access import Caller
from orchestrator.types import TenantId, new_id

REQUESTS = "parley:requests:"
TICKETS = "parley:ticket:"
_MINUTE_US = 60_000_000
_CALLER = TypeAdapter(Caller)


class RedisRequestLimits:
    """Implements `ports.access.RequestLimits`; a tenant's keys are in one hash slot."""

    def __init__(self, redis: Redis) -> None:
        self._take = redis.register_script(read_script("take_requests"))

    async def take(self, tenant_id: TenantId, limits: Sequence[Limit]) -> float:
        """See `RequestLimits.take`."""
        keys = [f"{REQUESTS}{{{tenant_id}}}:{limit.key}" for limit in limits]
        arguments: list[int] = []
        for limit in limits:
            each_us = _MINUTE_US // limit.per_minute
            arguments += [each_us, each_us * limit.burst]
        with translated("Redis does not count requests; try again later."):
            wait_ms = await self._take(keys=keys, args=arguments)
        return wait_ms / 1000


class RedisTickets:
    """Implements `ports.access.Tickets`; Redis sees digests only."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis

    async def issue(self, caller: Caller, *, lives_s: int) -> str:
        """See `Tickets.issue`."""
        ticket = secrets.token_urlsafe(32)
        with translated("No ticket can be given at present; try again later."):
            await self._redis.set(_key(ticket), _CALLER.dump_json(caller), ex=lives_s)
        return ticket

    async def redeem(self, ticket: str) -> Caller | None:
        """See `Tickets.redeem`."""
        with translated("Tickets cannot be checked at present; try again later."):
            kept = await self._redis.get(_key(ticket))
        return None if kept is None else _CALLER.validate_json(kept)


def _key(ticket: str) -> str:
    return TICKETS + hashlib.sha256(ticket.encode()).hexdigest()


CALLS = "parley:calls:"
ANSWERS = "parley:answers:"
WINDOW_MS = 60_000


class RedisRateLimits:
    """Implements `ports.tools.RateLimits` with a sorted set per key, which expires.

    A count whose reply is lost may have been made: too few calls may go out, never too many.
    """

    def __init__(self, redis: Redis) -> None:
        self._take_call = redis.register_script(read_script("take_call"))

    async def take(self, key: str, *, per_minute: int) -> float:
        """See `RateLimits.take`."""
        with translated("Redis does not count calls; try again later."):
            wait_ms = await self._take_call(keys=[CALLS + key], args=[new_id("call"), per_minute, WINDOW_MS])
        return wait_ms / 1000


class RedisToolCache:
    """Implements `ports.tools.ToolCache` with keys that expire."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis

    async def get(self, key: str) -> bytes | None:
        """See `ToolCache.get`."""
        with translated("Redis does not give answers; try again later."):
            return await self._redis.get(ANSWERS + key)

    async def put(self, key: str, value: bytes, *, ttl_ms: int) -> None:
        """See `ToolCache.put`."""
        with translated("Redis does not keep answers; try again later."):
            await self._redis.set(ANSWERS + key, value, px=ttl_ms)


PREFIX = "parley:spent:"


class RedisSpending:
    """Implements `ports.spending.SpendingStore`.

    An addition whose reply is lost may have been made: counters may show too much, never too little.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def add(self, key: str, amount: Spent, *, keep_s: int) -> Spent:
        """See `SpendingStore.add`."""
        name = PREFIX + key
        with translated("Redis does not count what models cost; try again later."):
            async with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.hincrby(name, "tokens", amount.tokens)
                pipeline.hincrby(name, "cost_micros", amount.cost_micros)
                pipeline.expire(name, keep_s)
                tokens, cost_micros, _ = await pipeline.execute()
        return Spent(tokens, cost_micros)
