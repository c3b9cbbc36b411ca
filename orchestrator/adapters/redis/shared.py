"""Expiring data in Redis that all processes share: rate limits, tickets, tool results and model spending."""

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
from orchestrator.types import SessionId, TenantId, new_id

REQUESTS = "parley:requests:"
TICKETS = "parley:ticket:"
_MINUTE_US = 60_000_000
_CALLER = TypeAdapter(Caller)


class RedisRequestLimits:
    """A Redis-backed `RequestLimits`. A tenant's keys share a hash slot."""

    def __init__(self, redis: Redis) -> None:
        self._take = redis.register_script(read_script("take_requests"))

    async def take(self, tenant_id: TenantId, limits: Sequence[Limit]) -> float:
        keys = [f"{REQUESTS}{{{tenant_id}}}:{limit.key}" for limit in limits]
        arguments: list[int] = []
        for limit in limits:
            each_us = _MINUTE_US // limit.per_minute
            arguments += [each_us, each_us * limit.burst]
        with translated():
            wait_ms = await self._take(keys=keys, args=arguments)
        return wait_ms / 1000


class RedisTickets:
    """A Redis-backed `Tickets`, which stores only digests of tickets."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis

    async def issue(self, caller: Caller, *, lives_s: int) -> str:
        ticket = secrets.token_urlsafe(32)
        with translated("Tickets can't be issued at the moment; try again later."):
            await self._redis.set(_key(ticket), _CALLER.dump_json(caller), ex=lives_s)
        return ticket

    async def redeem(self, ticket: str, *, stream: SessionId | None = None) -> Caller | None:
        with translated("Tickets can't be checked at the moment; try again later."):
            kept = await self._redis.get(_key(ticket))
            if kept is None and stream is not None:
                kept = await self._redis.get(_key(ticket, stream))
        return None if kept is None else _CALLER.validate_json(kept)

    async def keep(self, ticket: str, stream: SessionId, caller: Caller, *, lives_s: int) -> None:
        with translated("Tickets can't be issued at the moment; try again later."):
            await self._redis.set(_key(ticket, stream), _CALLER.dump_json(caller), ex=lives_s)


def _key(ticket: str, stream: SessionId | None = None) -> str:
    text = ticket if stream is None else f"{ticket} {stream}"
    return TICKETS + hashlib.sha256(text.encode()).hexdigest()


CALLS = "parley:calls:"
ANSWERS = "parley:answers:"
WINDOW_MS = 60_000


class RedisRateLimits:
    """A Redis-backed `RateLimits`, with an expiring sorted set per key.

    If a reply is lost, the call may still have been counted, so the limit can allow too few calls.
    """

    def __init__(self, redis: Redis) -> None:
        self._take_call = redis.register_script(read_script("take_call"))

    async def take(self, key: str, *, per_minute: int) -> float:
        with translated():
            wait_ms = await self._take_call(keys=[CALLS + key], args=[new_id("call"), per_minute, WINDOW_MS])
        return wait_ms / 1000


class RedisToolCache:
    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis

    async def get(self, key: str) -> bytes | None:
        with translated():
            return await self._redis.get(ANSWERS + key)

    async def put(self, key: str, value: bytes, *, ttl_ms: int) -> None:
        with translated():
            await self._redis.set(ANSWERS + key, value, px=ttl_ms)


PREFIX = "parley:spent:"


class RedisSpending:
    """A Redis-backed `SpendingStore`.

    If a reply is lost, the amount may still have been added, so counters can be too high.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def add(self, key: str, amount: Spent, *, keep_s: int) -> Spent:
        name = PREFIX + key
        with translated():
            async with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.hincrby(name, "tokens", amount.tokens)
                pipeline.hincrby(name, "cost_micros", amount.cost_micros)
                pipeline.expire(name, keep_s)
                tokens, cost_micros, _ = await pipeline.execute()
        return Spent(tokens, cost_micros)
