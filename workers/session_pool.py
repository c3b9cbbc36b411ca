"""Take ready sessions, and those that nobody took, and run their lanes side by side on the process's loop.

A Celery task makes the process take sessions and stays until there was nothing to do for a while, so
that a steady flow of turns costs no Celery message.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from orchestrator.errors import Unavailable
from orchestrator.ports.lane import Lane
from orchestrator.ports.wakeup import Wakeup
from orchestrator.runtime.lane import LaneRunner
from orchestrator.telemetry import get_logger
from orchestrator.types import SessionId

TAKE_AT_ONCE = 16
"""A process takes a few at a time, so that a burst spreads over all of them."""
TAKE_FOR_S = 1.0
RECONNECT_AFTER_S = 0.5
OFFERED_FOR_S = 10.0
"""So long, a session that was offered in vain is remembered as such."""

LEFT_TO_OTHERS_S = 10.0
"""So long, a process that runs no turns does not look for sessions after it could not offer one."""

_log = get_logger(__name__)

Observe = Callable[[SessionId], AbstractContextManager[None]]
"""Accompanies a session for as long as its lane runs here."""


class SessionPool:
    """Belongs to one event loop.

    Args:
        capacity: lanes that may run here at once.
        linger_s: how long the process waits without work before it stops taking sessions.
    """

    def __init__(
        self,
        lanes: LaneRunner,
        wakeup: Wakeup,
        *,
        capacity: int,
        linger_s: float,
        observe: Observe = lambda _: nullcontext(),
    ) -> None:
        self._lanes = lanes
        self._wakeup = wakeup
        self._capacity = capacity
        self._linger_s = linger_s
        self._observe = observe
        self._running: dict[SessionId, asyncio.Task[None]] = {}
        self._again: set[SessionId] = set()
        self._serving = False
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()

    @property
    def running(self) -> int:
        """Lanes at work in this process."""
        return len(self._running)

    @property
    def room(self) -> int:
        """Lanes that may still be taken here."""
        return max(0, self._capacity - len(self._running))

    @property
    def serving(self) -> bool:
        """True while a Celery task of this process takes sessions."""
        return self._serving

    def start(self, session_id: SessionId) -> None:
        """Run a session's lane, or look once more when its present run has ended."""
        if self._stopping.is_set():
            return
        if session_id in self._running:
            self._again.add(session_id)
            return
        task = asyncio.create_task(self._run(session_id))
        self._running[session_id] = task

    async def wake(self, session_id: SessionId) -> None:
        """Run a session; the first caller stays and takes further sessions until none comes.

        Without room for it, it stays among the ready ones, for us later or for others now.
        """
        if self.room:
            self.start(session_id)
        if self._serving:
            return
        self._serving = True
        try:
            await self._serve()
        finally:
            self._serving = False

    def stop(self) -> None:
        """Take nothing more; lanes end with their present turn."""
        self._stopping.set()
        self._room.set()
        self._lanes.drain()

    async def drain(self, grace_s: float) -> None:
        """Wait for the lanes to end; those that do not within `grace_s` seconds hand back their turn."""
        self.stop()
        await self._wakeup.retire(force=True)
        if self._running:
            await asyncio.wait(self._running.values(), timeout=grace_s)
        late = list(self._running.values())
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _serve(self) -> None:
        now = asyncio.get_running_loop().time
        idle_since = now()
        while not self._stopping.is_set():
            if self._capacity <= len(self._running):
                await self._wait_for_room()
                continue
            taken = await self._take()
            if taken or self._running:
                idle_since = now()
            elif now() - idle_since >= self._linger_s and await self._wakeup.retire():
                return

    async def _take(self) -> list[SessionId]:
        room = self.room
        try:
            taken = await self._wakeup.take(limit=min(room, TAKE_AT_ONCE), timeout_s=TAKE_FOR_S)
        except Unavailable as error:
            _log.warning("No sessions can be taken now.", error=error)
            await asyncio.sleep(RECONNECT_AFTER_S)
            return []
        # While we waited for them, we may have been asked to stop, or been woken with another.
        fitting = 0 if self._stopping.is_set() else self.room
        for session_id in taken[:fitting]:
            self.start(session_id)
        if taken[fitting:]:  # and only now: others are woken while they are on their way
            await self._wakeup.offer(*taken[fitting:])
        return taken

    async def _wait_for_room(self) -> None:
        """Full: do not count as awake, so that others are woken."""
        await self._wakeup.retire(force=True)
        self._room.clear()
        if self._capacity <= len(self._running) and not self._stopping.is_set():
            await self._room.wait()

    async def _run(self, session_id: SessionId) -> None:
        try:
            with self._observe(session_id):
                await self._lanes.run(session_id)
        except Unavailable as error:
            _log.warning("A lane was interrupted.", session=session_id, error=error)
        except Exception:  # noqa: BLE001 - one lane must not end the others
            _log.exception("A lane broke off.", session=session_id)
        finally:
            del self._running[session_id]
            self._room.set()
        if session_id in self._again:
            self._again.discard(session_id)
            self.start(session_id)


class Reconciler:
    """Find sessions with work that nobody holds, after a lost wake-up or the death of a worker (RT-1, RT-11).

    Args:
        pool: where sessions are run when offering them does not help; None: nowhere here.
    """

    def __init__(self, lane: Lane, wakeup: Wakeup, pool: SessionPool | None, *, grace_s: float) -> None:
        self._lane = lane
        self._wakeup = wakeup
        self._pool = pool
        self._grace_s = grace_s
        self._offered: dict[SessionId, float] = {}
        self._left_until = 0.0

    async def sweep(self) -> int:
        """Offer what nobody holds, and wake somebody for it; take it ourselves when that does not help.

        Who held it may have died and count as awake. Without Redis nobody can be woken; and a message may wait
        behind tasks that wait for a turn.
        """
        now = asyncio.get_running_loop().time()
        if self._pool is None and now < self._left_until:
            return 0
        found = await self._lane.sweep(grace_s=self._grace_s)
        offered = not found or await self._wakeup.offer(*found, nobody_came=True)
        if self._pool is not None:
            in_vain = self._in_vain(found, self._pool) if offered else found
            for session_id in in_vain[: self._pool.room]:
                self._pool.start(session_id)
        elif not offered:
            # Whoever finds a session keeps it from the others for a while: we can do nothing with it.
            self._left_until = now + LEFT_TO_OTHERS_S
        return len(found)

    def _in_vain(self, found: list[SessionId], pool: SessionPool) -> list[SessionId]:
        """Those that were offered a moment ago to no effect while nobody here takes sessions."""
        now = asyncio.get_running_loop().time()
        before = {session_id: at for session_id, at in self._offered.items() if now - at < OFFERED_FOR_S}
        self._offered = {**before, **dict.fromkeys(found, now)}
        return [] if pool.serving else [session_id for session_id in found if session_id in before]
