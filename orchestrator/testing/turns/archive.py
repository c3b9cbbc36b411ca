"""Reads what turns have left behind, in memory."""

from __future__ import annotations

from orchestrator.errors import NotFound
from orchestrator.testing.store import MemoryStore
from orchestrator.types import JsonObject, SessionId, TenantId, TurnId


class MemoryArchive:
    """Implements `ports.turns.archive.Archive`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def frames(self, tenant_id: TenantId, session_id: SessionId) -> list[JsonObject]:
        session = self._store.session(tenant_id, session_id)
        kept = reversed(session.frames.values())
        return [
            {**frame.body, "turn_id": turn_id, "at": at.isoformat()}
            for frame, (turn_id, at) in ((frame, session.framed[frame.flow_id]) for frame in kept)
        ]

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        for frame in await self.frames(tenant_id, session_id):
            if frame["frame_id"] == frame_id:
                return frame
        raise NotFound("frame", frame_id)

    async def journal(
        self,
        tenant_id: TenantId,
        session_id: SessionId,
        *,
        turn_id: TurnId | None = None,
        limit: int = 200,
    ) -> list[JsonObject]:
        session = self._store.session(tenant_id, session_id)
        steps = [
            {
                "turn_id": turn.turn_id,
                "key": step.key,
                "kind": step.kind,
                "status": step.status.value,
                "request_hash": step.request_hash,
                "at": turn.stepped[step.key].isoformat(),
            }
            for turn in session.turns
            for step in turn.steps.values()
            if turn_id in {None, turn.turn_id}
        ]
        return steps[::-1][:limit]

    async def signals(self, tenant_id: TenantId, turn_id: TurnId) -> list[JsonObject]:
        _, turn = self._store.turn(tenant_id, turn_id)
        return list(turn.signals)
