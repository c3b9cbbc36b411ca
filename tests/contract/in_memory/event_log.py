"""The event log of a `MemoryStore`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.testing.store import MemoryStore
from orchestrator.turns.event import Event
from orchestrator.types import SessionId, TenantId


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
