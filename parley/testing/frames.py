from orchestrator.errors import NotFound
from orchestrator.types import JsonObject, SessionId, TenantId
from parley.testing.store import MemoryStore


class MemoryFrames:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def frame(self, tenant_id: TenantId, session_id: SessionId, frame_id: str) -> JsonObject:
        frames = self._store.session(tenant_id, session_id).frames.values()
        found = next((one for one in frames if one.frame_id == frame_id), None)
        if found is None:
            raise NotFound("frame", frame_id)
        return found.body
