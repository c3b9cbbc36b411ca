"""Limits of requests and short-lived tickets, shared by all gateways. What is done without Redis is the caller's."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import orjson
from redis.asyncio import Redis

from orchestrator.adapters.redis.client import read_script, translated
from orchestrator.ports.access import Limit
from orchestrator.turns.access import Caller, Scope
from orchestrator.types import TenantId, UserId

REQUESTS = "parley:requests:"
TICKETS = "parley:ticket:"
_MINUTE_US = 60_000_000


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
        body = {
            "tenant_id": caller.tenant_id,
            "scopes": sorted(caller.scopes),
            "name": caller.name,
            "user_id": caller.user_id,
            "credential": caller.credential,
            "known": caller.known,
            "expires_at": caller.expires_at,
        }
        with translated("No ticket can be given at present; try again later."):
            await self._redis.set(_key(ticket), orjson.dumps(body), ex=lives_s)
        return ticket

    async def redeem(self, ticket: str) -> Caller | None:
        """See `Tickets.redeem`."""
        with translated("Tickets cannot be checked at present; try again later."):
            kept = await self._redis.get(_key(ticket))
        if kept is None:
            return None
        body = orjson.loads(kept)
        return Caller(
            TenantId(body["tenant_id"]),
            frozenset(Scope(scope) for scope in body["scopes"]),
            body["name"],
            None if body["user_id"] is None else UserId(body["user_id"]),
            body["credential"],
            body["known"],
            body.get("expires_at"),
        )


def _key(ticket: str) -> str:
    return TICKETS + hashlib.sha256(ticket.encode()).hexdigest()
