"""Isolate suspected poison turns from all other turns (RT-26).

After a turn has crashed two workers, it runs in a separate process, only with other suspected turns. Most of them
are harmless, and a process runs many at once, so that a takeover takes no longer (RT-11). If the process crashes,
its turns run again in smaller groups, and finally alone. A turn that crashes alone is poison, and the next worker
to claim its session lane quarantines it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections import defaultdict
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

from orchestrator.bootstrap import AgentCatalogue, BuildAgent, open_lane, open_ports, render_told
from orchestrator.errors import Unavailable
from orchestrator.ports.wakeup import Wakeup
from orchestrator.runtime.lane import LaneRunner, TurnObserver
from orchestrator.settings import Settings, known_secrets
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.logs import set_up_logging
from orchestrator.turns.lease import Work
from orchestrator.turns.turn import TurnInput, TurnStatus
from orchestrator.types import SessionId, TurnId
from workers.fork_server import ForkServer

_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__, "orchestrator.agent.build"])

COMPANY: Final[Mapping[int, int]] = {2: 32, 3: 4}
"""Maximum number of turns per process, by number of crashes. Turns with more crashes run alone."""
AT_ONCE: Final = 8
"""Maximum number of isolation processes per worker. Further suspected poison turns wait."""
GATHER_S: Final = 0.02
"""Delay before a process starts, in seconds, because a crash interrupts many turns at about the same time."""
GATHER_AT_MOST_S: Final = 0.32
"""Maximum delay. It doubles with each running process, so that turns that come slowly don't use up the processes."""
STARTED_WITHIN_S: Final = 60
"""Time added to the turn deadline for starting a process and recording results, in seconds."""
RENEW_EVERY_S: Final = 1.0
PAUSE_S = 5.0
"""Delay before a session is offered again after its isolation process could not start, in seconds."""

_DONE: Final = "done"
"""Report that an isolation process is finished with a session. All other reports are for the observer."""

_log = get_logger(__name__)


class Isolation:
    """A runner of suspected poison turns in separate processes.

    `build`: builds a domain's agent. It must be a module-level function, because other processes import it.
    `forks`: starts the processes. Default: the fork server of `multiprocessing`. `observer`: notified of turn
    attempts in the separate processes.
    """

    def __init__(
        self,
        settings: Settings,
        build: BuildAgent,
        wakeup: Wakeup,
        forks: ForkServer | None = None,
        observer: TurnObserver | None = None,
    ) -> None:
        self._main = partial(run_suspects, settings, build)
        self._forks = forks
        self._wakeup = wakeup
        self._observer = observer
        self._room = asyncio.Semaphore(AT_ONCE)
        self._running = 0
        self._waiting: defaultdict[int, list[SessionId]] = defaultdict(list)
        self._sessions: set[SessionId] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, session_id: SessionId, crashes: int) -> None:
        """Run the session's next turn in isolation, unless it already runs or waits in isolation.

        `crashes`: number of workers that died while running the turn.
        """
        if session_id not in self._sessions:
            self._sessions.add(session_id)
            waiting = self._waiting[crashes]
            waiting.append(session_id)
            if len(waiting) == 1:
                self._spawn(self._gather(waiting, crashes))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="suspected poison turns")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Stop starting processes. Running processes exit after their turns, and this process exits after them."""
        running = list(self._tasks)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _gather(self, waiting: list[SessionId], crashes: int) -> None:
        """Start processes for waiting turns with this number of crashes, until none waits."""
        size = COMPANY.get(crashes, 1)
        while waiting:
            await self._room.acquire()
            if len(waiting) < size:
                await asyncio.sleep(min(GATHER_S * 2**self._running, GATHER_AT_MOST_S))
            members, waiting[:] = waiting[:size], waiting[size:]
            self._running += 1
            self._spawn(self._run(members, crashes))

    async def _run(self, members: Sequence[SessionId], crashes: int) -> None:
        try:
            await self._run_apart(members, crashes)
        except (OSError, EOFError) as error:  # the next start restarts a fork server that failed
            _log.error("Could not start a process for suspected poison turns.", error=error)
            await asyncio.sleep(PAUSE_S)
        finally:
            self._running -= 1
            self._room.release()
        for session_id in self._sessions.intersection(members):
            await self._offer(session_id)

    async def _offer(self, session_id: SessionId) -> None:
        self._sessions.discard(session_id)
        await self._wakeup.offer(session_id)

    async def _run_apart(self, members: Sequence[SessionId], crashes: int) -> None:
        """Run the next turn of each session in a process. `crashes`: number of crashes of each turn."""
        below = crashes + 1 if crashes in COMPANY else None
        with await asyncio.to_thread(self._start, members, below) as reader:
            _log.warning("Turns whose workers crashed run in isolation.", sessions=members, crashes=crashes)
            await self._listen(reader)
        if crashed := [session_id for session_id in members if session_id in self._sessions]:
            _log.error("The process of isolated turns crashed.", sessions=crashed)

    def _start(self, members: Sequence[SessionId], below: int | None) -> Connection:
        """Start a process and return the reading end of its reports. Raises OSError or EOFError."""
        if self._forks is not None:
            try:
                return self._forks.start(members, below)
            except BrokenPipeError:
                self._forks = None
        reader, writer = multiprocessing.Pipe(duplex=False)
        with writer:  # the first start takes seconds, because the fork server imports everything
            _FORKS.Process(target=self._main, args=(members, below, writer)).start()
        return reader

    async def _listen(self, reader: Connection) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def receive() -> None:
            try:
                name, arguments, options = reader.recv()
            except (EOFError, OSError):
                loop.remove_reader(reader.fileno())
                ended.set()
            else:
                if name == _DONE:
                    self._spawn(self._offer(*arguments))
                elif self._observer is not None:
                    getattr(self._observer, name)(*arguments, **options)

        loop.add_reader(reader.fileno(), receive)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(reader.fileno())


def run_suspects(
    settings: Settings,
    build: BuildAgent,
    sessions: Sequence[SessionId],
    crashes_below: int | None,
    reports: Connection,
) -> None:
    """Run the next turn of each session in this process. The kernel ends the process if a turn takes too long.

    `crashes_below`: turns with at least this many crashes don't run. None: no limit, for a turn that runs alone.
    `reports`: receives turn attempts, for the worker's observer, and sessions whose turn has ended.
    """
    os.setsid()  # so that Ctrl-C in a terminal reaches only the worker
    signal.alarm(int(settings.turn_deadline_s) + STARTED_WITHIN_S)
    set_up_logging("INFO", known_secrets(settings))
    try:
        asyncio.run(_run_turns(settings, build, sessions, crashes_below, _Relay(reports)))
    except Unavailable as error:  # before any turn was started
        _log.warning("Session lanes were interrupted.", sessions=sessions, error=error)


async def _run_turns(
    settings: Settings,
    build: BuildAgent,
    sessions: Sequence[SessionId],
    crashes_below: int | None,
    relay: _Relay,
) -> None:
    async with open_ports(settings) as ports, open_lane(ports, crashes_below=crashes_below) as lane:
        lanes = LaneRunner(
            lane,
            ports.shared.live,
            ports.shared.wakeup,
            AgentCatalogue(build, ports).get,
            observer=relay,
            word=partial(render_told, ports.domains),
        )
        lanes.drain()
        renewing = asyncio.create_task(_renew(lanes))
        async with asyncio.TaskGroup() as running:
            for session_id in sessions:
                running.create_task(_run_turn(lanes, session_id, relay))
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing


async def _run_turn(lanes: LaneRunner, session_id: SessionId, relay: _Relay) -> None:
    try:
        await lanes.run(session_id)
    except Unavailable as error:  # not a crash: the lane is released once the store responds
        _log.warning("A session lane was interrupted.", session=session_id, error=error)
    relay.done(session_id)


class _Relay(TurnObserver):
    """A `TurnObserver` that reports turn attempts to the worker."""

    def __init__(self, reports: Connection) -> None:
        self._reports = reports

    def began(self, session_id: SessionId, work: Work) -> None:
        # Without the turn's contents, the report is small enough for one atomic write to the pipe, so the worker
        # never blocks on an incomplete report.
        self._report("began", session_id, replace(work, input=TurnInput(), steps=(), failure=None))

    def ended(self, session_id: SessionId, turn_id: TurnId, status: TurnStatus) -> None:
        self._report("ended", session_id, turn_id, status)

    def left(self, turn_id: TurnId, *, again: bool) -> None:
        self._report("left", turn_id, again=again)

    def done(self, session_id: SessionId) -> None:
        """Report that the process is finished with a session."""
        self._report(_DONE, session_id)

    def _report(self, name: str, *arguments: object, **options: Any) -> None:
        with suppress(OSError):  # the worker has exited
            self._reports.send((name, arguments, options))


async def _renew(lanes: LaneRunner) -> None:
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        with suppress(Unavailable):
            await lanes.renew()
