"""Claim ready sessions and run their lanes concurrently on the process's event loop.

After one Celery task, the process claims sessions until it has been idle for a while, so that a steady flow
of turns needs no further Celery messages.
"""

import asyncio

from orchestrator.errors import Unavailable
from orchestrator.ports.lane import Lane
from orchestrator.ports.wakeup import Wakeup
from orchestrator.runtime.lane import LaneRunner
from orchestrator.telemetry import get_logger
from orchestrator.types import SessionId

TAKE_AT_ONCE = 16
"""Maximum number of sessions per claim. Low, so that a burst spreads across processes."""
TAKE_FOR_S = 1.0
RECONNECT_AFTER_S = 0.5
OFFERED_FOR_S = 10.0
"""Time that the reconciler remembers an offered session, in seconds."""

LEFT_TO_OTHERS_S = 10.0
"""Time that a process without a pool skips sweeps after a failed offer, in seconds."""

_log = get_logger(__name__)


class SessionPool:
    """A pool of running sessions, bound to one event loop.

    Args:
        capacity: maximum number of running lanes.
        linger_s: idle time in seconds after which the process stops claiming sessions.
    """

    def __init__(
        self,
        lanes: LaneRunner,
        wakeup: Wakeup,
        *,
        capacity: int,
        linger_s: float,
    ) -> None:
        self._lanes = lanes
        self._wakeup = wakeup
        self._capacity = capacity
        self._linger_s = linger_s
        self._running: dict[SessionId, asyncio.Task[None]] = {}
        self._again: set[SessionId] = set()
        self._serving = False
        self._stopping = asyncio.Event()
        self._room = asyncio.Event()

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def room(self) -> int:
        return max(0, self._capacity - len(self._running))

    @property
    def serving(self) -> bool:
        """Return True while a call of `wake` is claiming sessions."""
        return self._serving

    def start(self, session_id: SessionId) -> None:
        """Run a session's lane, or run it again after its current run. Do nothing if the pool is stopping."""
        if self._stopping.is_set():
            return
        if session_id in self._running:
            self._again.add(session_id)
            return
        task = asyncio.create_task(self._run(session_id))
        self._running[session_id] = task

    async def wake(self, session_id: SessionId) -> None:
        """Run a session. The first caller then claims further sessions until the process is idle.

        If the pool is full, the session stays ready for any worker.
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
        """Stop claiming sessions, and stop each lane after its current turn."""
        self._stopping.set()
        self._room.set()
        self._lanes.drain()

    async def drain(self, grace_s: float) -> None:
        """Wait for lanes to end.

        After `grace_s` seconds, cancel the remaining lanes, which release their turns.
        """
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
            await self._lanes.keep_up()
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
            _log.warning("Can't claim sessions now.", error=error)
            await asyncio.sleep(RECONNECT_AFTER_S)
            return []
        # During the wait, the pool may have been stopped, or woken with another session.
        fitting = 0 if self._stopping.is_set() else self.room
        for session_id in taken[:fitting]:
            self.start(session_id)
        if taken[fitting:]:  # last, because other sessions can be woken in the meantime
            await self._wakeup.offer(*taken[fitting:])
        return taken

    async def _wait_for_room(self) -> None:
        """Wait for room. Meanwhile, this process doesn't count as awake, so that offers wake other workers."""
        await self._wakeup.retire(force=True)
        self._room.clear()
        if self._capacity <= len(self._running) and not self._stopping.is_set():
            await self._room.wait()

    async def _run(self, session_id: SessionId) -> None:
        try:
            await self._lanes.run(session_id)
        except Unavailable as error:
            _log.warning("A session lane was interrupted.", session=session_id, error=error)
        except Exception:  # noqa: BLE001 - one lane must not end the others
            _log.exception("A session lane failed.", session=session_id)
        finally:
            del self._running[session_id]
            self._room.set()
        if session_id in self._again:
            self._again.discard(session_id)
            self.start(session_id)


class Reconciler:
    """A component that finds sessions left unclaimed by a lost wake-up or a dead worker (RT-1, RT-11).

    Args:
        pool: runs sessions if offering them fails, or None if this process can't run turns.
        grace_s: time in seconds that work can stay unclaimed before a sweep finds its session.
    """

    def __init__(self, lane: Lane, wakeup: Wakeup, pool: SessionPool | None, *, grace_s: float) -> None:
        self._lane = lane
        self._wakeup = wakeup
        self._pool = pool
        self._grace_s = grace_s
        self._offered: dict[SessionId, float] = {}
        self._left_until = 0.0

    async def sweep(self) -> int:
        """Offer unclaimed sessions, wake a worker, and return the number of sessions.

        If the offer has no effect, run as many of the sessions here as the pool has room for. An offer has no
        effect if a dead worker still counts as awake, if Redis is unavailable, or if the wake-up message is queued
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
            # A sweep hides its sessions from other sweeps for a while, but this process can't run the
            # sessions.
            self._left_until = now + LEFT_TO_OTHERS_S
        return len(found)

    def _in_vain(self, found: list[SessionId], pool: SessionPool) -> list[SessionId]:
        """Return the sessions in `found` that were offered recently, so that offering them had no effect.

        While this process claims sessions, the list is empty.
        """
        now = asyncio.get_running_loop().time()
        before = {session_id: at for session_id, at in self._offered.items() if now - at < OFFERED_FOR_S}
        self._offered = {**before, **dict.fromkeys(found, now)}
        return [] if pool.serving else [session_id for session_id in found if session_id in before]
