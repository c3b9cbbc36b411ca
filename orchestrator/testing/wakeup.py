"""Wake-ups in memory, for runners of the same event loop."""

from __future__ import annotations

import asyncio

from orchestrator.types import SessionId


class MemoryWakeup:
    def __init__(self) -> None:
        self._ready: dict[SessionId, None] = {}
        self._offered = asyncio.Event()

    async def offer(self, *session_ids: SessionId) -> bool:
        self._ready.update(dict.fromkeys(session_ids))
        self._offered.set()
        return True

    async def take(self, *, limit: int, timeout_s: float) -> list[SessionId]:
        if not self._ready:
            self._offered.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._offered.wait()
            except TimeoutError:
                return []
        taken = list(self._ready)[:limit]
        for session_id in taken:
            del self._ready[session_id]
        return taken

    async def retire(self, *, force: bool = False) -> bool:
        return force or not self._ready
