"""Isolate suspected poison turns from all other turns (RT-26).

After a turn has crashed two workers, it runs alone, in a separate process. A turn that also crashes alone is
poison, and the next worker to claim its session lane quarantines it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
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

_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__, "orchestrator.agent.build"])

AT_ONCE: Final = 8
"""Maximum number of isolation processes per worker. Further suspected poison turns wait."""
STARTED_WITHIN_S: Final = 60
"""Time added to the turn deadline for starting a process and recording results, in seconds."""
RENEW_EVERY_S: Final = 1.0
PAUSE_S = 5.0
"""Delay before a session is offered again after its isolation process could not start, in seconds."""

_log = get_logger(__name__)


class Isolation:
    """A runner of suspected poison turns, each in a separate process.

    `build`: builds a domain's agent. It must be a module-level function, because other processes import it.
    `observer`: notified of turn attempts in the separate processes.
    """

    def __init__(
        self, settings: Settings, build: BuildAgent, wakeup: Wakeup, observer: TurnObserver | None = None
    ) -> None:
        self._settings = settings
        self._build = build
        self._wakeup = wakeup
        self._observer = observer
        self._room = asyncio.Semaphore(AT_ONCE)
        self._running: dict[SessionId, asyncio.Task[None]] = {}

    def start(self, session_id: SessionId, crashes: int) -> None:
        """Run the session's next turn in isolation, unless it already runs or waits in isolation.

        `crashes`: number of workers that died while running the turn.
        """
        if session_id not in self._running:
            task = asyncio.create_task(self._run(session_id, crashes), name="a suspected poison turn")
            self._running[session_id] = task
            task.add_done_callback(lambda _: self._running.pop(session_id, None))

    async def close(self) -> None:
        """Stop starting processes. Running processes exit after their turns, and this process exits after them."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run(self, session_id: SessionId, crashes: int) -> None:
        async with self._room:
            try:
                await self._run_apart(session_id, crashes)
            except (OSError, EOFError) as error:  # the next start restarts a fork server that failed
                _log.error("Could not start a process for a suspected poison turn.", error=error)
                await asyncio.sleep(PAUSE_S)
        await self._wakeup.offer(session_id)

    async def _run_apart(self, session_id: SessionId, crashes: int) -> None:
        reader, writer = multiprocessing.Pipe(duplex=False)
        process = _FORKS.Process(target=run_suspect, args=(self._settings, self._build, session_id, writer))
        with reader:
            with writer:  # the first start takes seconds, because the fork server imports everything
                await asyncio.to_thread(process.start)
            _log.warning(
                "A turn whose workers crashed runs in isolation.",
                session=session_id,
                crashes=crashes,
                pid=process.pid,
            )
            await self._listen(reader)
        await asyncio.to_thread(process.join)
        if process.exitcode:
            _log.error("The process of an isolated turn crashed.", session=session_id, code=process.exitcode)

    async def _listen(self, reader: Connection) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def receive() -> None:
            try:
                name, arguments, options = reader.recv()
            except (EOFError, OSError):
                loop.remove_reader(reader.fileno())
                ended.set()
            else:
                if self._observer is not None:
                    getattr(self._observer, name)(*arguments, **options)

        loop.add_reader(reader.fileno(), receive)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(reader.fileno())


def run_suspect(settings: Settings, build: BuildAgent, session_id: SessionId, reports: Connection) -> None:
    """Run the session's next turn in this process. If the turn takes too long, the kernel ends the process.

    `reports`: receives turn attempts, for the worker's observer.
    """
    os.setsid()  # so that Ctrl-C in a terminal reaches only the worker
    signal.alarm(int(settings.turn_deadline_s) + STARTED_WITHIN_S)
    set_up_logging("INFO", known_secrets(settings))
    try:
        asyncio.run(_run_turn(settings, build, session_id, reports))
    except Unavailable as error:  # not a crash: the lane is released once the store responds
        _log.warning("A session lane was interrupted.", session=session_id, error=error)


async def _run_turn(
    settings: Settings, build: BuildAgent, session_id: SessionId, reports: Connection
) -> None:
    async with open_ports(settings) as ports, open_lane(ports, crashes_below=None) as lane:
        lanes = LaneRunner(
            lane,
            ports.shared.live,
            ports.shared.wakeup,
            AgentCatalogue(build, ports).get,
            observer=_Relay(reports),
            word=partial(render_told, ports.domains),
        )
        lanes.drain()
        renewing = asyncio.create_task(_renew(lanes))
        await lanes.run(session_id)
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing


class _Relay:
    """A `TurnObserver` that reports turn attempts to the worker."""

    def __init__(self, reports: Connection) -> None:
        self._reports = reports

    def began(self, session_id: SessionId, work: Work) -> None:
        # Without the turn's contents, the report is small enough for one atomic write to the pipe, so the
        # worker never blocks on an incomplete report.
        self._report("began", session_id, replace(work, input=TurnInput(), steps=(), failure=None))

    def ended(self, session_id: SessionId, turn_id: TurnId, status: TurnStatus) -> None:
        self._report("ended", session_id, turn_id, status)

    def left(self, turn_id: TurnId, *, again: bool) -> None:
        self._report("left", turn_id, again=again)

    def _report(self, name: str, *arguments: object, **options: Any) -> None:
        with suppress(OSError):  # the worker has exited
            self._reports.send((name, arguments, options))


async def _renew(lanes: LaneRunner) -> None:
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        with suppress(Unavailable):
            await lanes.renew()
