"""Data of past turns in a `MemoryStore`: ledger, outbox and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from orchestrator.ports.outbox import OutboxMessage
from orchestrator.turns.effect import LedgerEntry
from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TenantId
from parley.testing.store import MemoryStore


class MemoryEffects:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        self._store.session(tenant_id, session_id)
        own = [entry for key, entry in self._store.effects.items() if key[0] == session_id]
        return sorted(own, key=lambda entry: entry.at or self._store.clock())[:limit]


class MemoryOutbox:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
        now, sent = self._store.clock(), self._store.outbox_sent
        waited = now - timedelta(seconds=again_after_s)
        due = [
            message
            for message in self._store.outbox
            if message.kind in kinds and (message.id not in sent or (sent[message.id] or now) < waited)
        ][:limit]
        sent.update((message.id, now) for message in due)
        return due

    async def acknowledge(self, ids: list[int]) -> None:
        self._store.outbox_sent.update(dict.fromkeys(ids))


class MemoryEventLog:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def read(
        self, tenant_id: TenantId, session_id: SessionId, *, after: int = 0, limit: int = 500
    ) -> list[Event]:
        session = self._store.sessions.get(session_id)
        if session is None or session.tenant_id != tenant_id:
            return []
        return session.events[after : after + limit]

    async def last_numbers(
        self, tenant_id: TenantId, session_ids: Sequence[SessionId]
    ) -> Mapping[SessionId, int]:
        found = [self._store.sessions[name] for name in session_ids if name in self._store.sessions]
        return {one.session_id: len(one.events) for one in found if one.tenant_id == tenant_id}
