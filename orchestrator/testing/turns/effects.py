"""The ledger of effects in memory: the rules of `adapters.postgres.turns.effects` over a `MemoryStore`."""

from __future__ import annotations

from orchestrator.testing.store import MemoryStore
from orchestrator.turns.effect import LedgerEntry
from orchestrator.types import SessionId, TenantId


class MemoryEffects:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def list(
        self, tenant_id: TenantId, session_id: SessionId, *, limit: int = 200
    ) -> list[LedgerEntry]:
        self._store.session(tenant_id, session_id)
        own = [entry for key, entry in self._store.effects.items() if key[0] == session_id]
        return sorted(own, key=lambda entry: entry.at or self._store.clock())[:limit]
