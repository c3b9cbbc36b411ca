"""Find sessions with work that nobody holds, after a lost wake-up or the death of a worker (RT-1, RT-11)."""

from __future__ import annotations

import asyncio

from orchestrator.ports.lane import Lane
from orchestrator.ports.wakeup import Wakeup
from orchestrator.types import SessionId
from workers.session_pool import SessionPool

OFFERED_FOR_S = 10.0
"""So long, a session that was offered in vain is remembered as such."""


class Reconciler:
    """Args: `pool`: where sessions are run when offering them does not help; None: nowhere here."""

    def __init__(self, lane: Lane, wakeup: Wakeup, pool: SessionPool | None, *, grace_s: float) -> None:
        self._lane = lane
        self._wakeup = wakeup
        self._pool = pool
        self._grace_s = grace_s
        self._offered: dict[SessionId, float] = {}

    async def sweep(self) -> int:
        """Offer what nobody holds; take it ourselves when that does not help.

        Without Redis nobody can be woken; and a message may wait behind tasks that wait for a turn.
        """
        found = await self._lane.sweep(grace_s=self._grace_s)
        offered = not found or await self._wakeup.offer(*found)
        if self._pool is not None:
            in_vain = self._in_vain(found, self._pool) if offered else found
            for session_id in in_vain[: self._pool.room]:
                self._pool.start(session_id)
        return len(found)

    def _in_vain(self, found: list[SessionId], pool: SessionPool) -> list[SessionId]:
        """Those that were offered a moment ago to no effect while nobody here takes sessions."""
        now = asyncio.get_running_loop().time()
        before = {session_id: at for session_id, at in self._offered.items() if now - at < OFFERED_FOR_S}
        self._offered = {**before, **dict.fromkeys(found, now)}
        return [] if pool.serving else [session_id for session_id in found if session_id in before]
