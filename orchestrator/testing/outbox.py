"""The outbox in memory: what the commits of a `MemoryLane` left to be sent."""

from __future__ import annotations

from datetime import timedelta

from orchestrator.ports.outbox import OutboxMessage
from orchestrator.testing.store import MemoryStore


class MemoryOutbox:
    """Implements `ports.outbox.Outbox`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def take_due(
        self, kinds: tuple[str, ...], *, again_after_s: float, limit: int = 100
    ) -> list[OutboxMessage]:
        """See `Outbox`."""
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
        """See `Outbox`."""
        self._store.outbox_sent.update(dict.fromkeys(ids))
