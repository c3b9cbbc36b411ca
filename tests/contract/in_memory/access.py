"""Keys, tickets and limits in memory, with a clock that tests control."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from orchestrator.errors import NotFound
from orchestrator.ports.access import Limit
from orchestrator.turns.access import ApiKey, Caller, Scope, digest, fits, make_key_text, read_key, show_key
from orchestrator.types import SessionId, TenantId, UserId


class MemoryKeys:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._keys: dict[str, tuple[ApiKey, str]] = {}

    async def create(
        self,
        tenant_id: TenantId,
        name: str,
        scopes: frozenset[Scope],
        *,
        user_id: UserId | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        text = make_key_text()
        key = ApiKey(text.key_id, tenant_id, name, scopes, user_id, self._clock(), expires_at)
        self._keys[text.key_id] = (key, digest(text.secret))
        return key, show_key(text)

    async def list(self, tenant_id: TenantId | None = None) -> list[ApiKey]:
        return [key for key, _ in reversed(self._keys.values()) if tenant_id in {None, key.tenant_id}]

    async def revoke(self, key_id: str) -> ApiKey:
        if key_id not in self._keys:
            raise NotFound("key", key_id)
        key, kept = self._keys[key_id]
        key = replace(key, revoked_at=key.revoked_at or self._clock())
        self._keys[key_id] = (key, kept)
        return key

    async def find(self, text: str) -> ApiKey | None:
        given = read_key(text)
        if given is None or given.key_id not in self._keys:
            return None
        key, kept = self._keys[given.key_id]
        return key if await self.is_valid(given.key_id) and fits(given.secret, kept) else None

    async def is_valid(self, key_id: str) -> bool:
        if key_id not in self._keys:
            return False
        key, _ = self._keys[key_id]
        return key.revoked_at is None and (key.expires_at is None or key.expires_at > self._clock())


class MemoryTickets:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._tickets: dict[str, tuple[Caller, float]] = {}

    async def issue(self, caller: Caller, *, lives_s: int) -> str:
        ticket = secrets.token_urlsafe(32)
        self._tickets[ticket] = (caller, self._clock().timestamp() + lives_s)
        return ticket

    async def redeem(self, ticket: str, *, stream: SessionId | None = None) -> Caller | None:
        now = self._clock().timestamp()
        known = [self._tickets.get(name, (None, 0.0)) for name in (ticket, f"{ticket} {stream}")]
        return next((caller for caller, ends_at in known if now < ends_at), None)

    async def keep(self, ticket: str, stream: SessionId, caller: Caller, *, lives_s: int) -> None:
        self._tickets[f"{ticket} {stream}"] = (caller, self._clock().timestamp() + lives_s)


class MemoryRequestLimits:
    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._rest: dict[tuple[TenantId, str], float] = {}

    async def take(self, tenant_id: TenantId, limits: Sequence[Limit]) -> float:
        now = self._clock().timestamp()
        rest: dict[tuple[TenantId, str], float] = {}
        wait = 0.0
        for limit in limits:
            each = 60 / limit.per_minute
            at = max(self._rest.get((tenant_id, limit.key), 0.0), now) + each
            rest[tenant_id, limit.key] = at
            wait = max(wait, at - each * limit.burst - now)
        if wait <= 0:
            self._rest.update(rest)
        return max(wait, 0.0)
