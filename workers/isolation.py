"""Isolate suspected poison turns from all others (RT-26).

After its second crash, a turn only runs together with other suspected turns. Most are harmless, and one
process clears many of them. If the process dies, its turns are retried in smaller groups, and finally
alone. A turn that crashes alone is poison, and the next worker to claim its session lane quarantines it.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Self

import orjson

from orchestrator.bootstrap import AgentCatalogue, BuildAgent, open_lane, open_ports, render_told
from orchestrator.errors import Unavailable
from orchestrator.ports.wakeup import Wakeup
from orchestrator.runtime.lane import LaneRunner, TurnObserver
from orchestrator.settings import Settings, known_secrets
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.logs import set_up_logging
from orchestrator.turns.lease import Work
from orchestrator.turns.turn import TurnInput, TurnStatus
from orchestrator.types import JsonObject, SessionId, TurnId, is_object

_FORKS: Final = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload([__name__, "orchestrator.agent.build"])

COMPANY: Final[Mapping[int, int]] = {2: 32, 3: 4}
"""Maximum suspected turns per process, by number of crashes. Turns with more crashes run alone."""
AT_ONCE = 4
"""Maximum isolation processes per worker. Further suspected turns wait."""
STARTED_WITHIN_S = 60.0
"""Time in seconds for starting a process and recording results, added to the turn deadline."""
RENEW_EVERY_S = 1.0
PAUSE_S = 5.0
"""Delay between attempts to start a process, in seconds."""

_log = get_logger(__name__)


class Isolation:
    """The worker's side: assigns suspected turns to processes and kills a process whose turn takes too long.

    `build`: builds a domain's agent; a function of a module, because other processes import it. `observer`: notified of
    turn attempts in all processes.
    """

    def __init__(
        self, settings: Settings, build: BuildAgent, wakeup: Wakeup, observer: TurnObserver | None = None
    ) -> None:
        self._observer = observer
        self._longest_s = _longest_s(settings)
        self._run_suspects = partial(run_suspects, settings, build)
        self._wakeup = wakeup
        self._processes: list[_SuspectProcess] = []
        self._room = asyncio.Condition()
        self._running: dict[SessionId, asyncio.Task[None]] = {}

    def start(self, session_id: SessionId, crashes: int) -> None:
        """Run the session's next turn in isolation, unless a run is already pending.

        `crashes`: number of workers that died while running the turn.
        """
        if session_id not in self._running:
            task = asyncio.create_task(self._run(session_id, crashes), name="a turn under suspicion")
            self._running[session_id] = task
            task.add_done_callback(lambda _: self._running.pop(session_id, None))

    async def close(self) -> None:
        """Disconnect from the processes. Each exits after its turns, and this process exits after them."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for process in self._processes:
            process.dismiss()

    async def _run(self, session_id: SessionId, crashes: int) -> None:
        try:
            process = await self._join(session_id, crashes)
        except (OSError, EOFError) as error:  # EOFError: the fork server failed; the next start restarts it
            _log.error("Could not start a process for suspected turns.", error=error)
            await asyncio.sleep(PAUSE_S)
        else:
            _log.warning(
                "A turn whose workers crashed runs in isolation.", session=session_id, crashes=crashes
            )
            if not await process.ended(session_id, self._longest_s):
                _log.error("A process for suspected turns ended.", session=session_id, pid=process.pid)
                if process.pid is None:  # the turn was not started, so it is not to blame
                    await asyncio.sleep(PAUSE_S)
            await self._leave(process)
        await self._wakeup.offer(session_id)

    async def _join(self, session_id: SessionId, crashes: int) -> _SuspectProcess:
        """Assign the session to a process of the right size, waiting for room if necessary."""
        size = COMPANY.get(crashes, 1)
        async with self._room:
            while True:
                for process in self._processes:
                    if process.is_open and process.size == size > len(process.members):
                        process.name(session_id)
                        return process
                if len(self._processes) < AT_ONCE:
                    below = crashes + 1 if size > 1 else None
                    self._processes.append(
                        await _SuspectProcess.begin(self._run_suspects, size, below, self._observer)
                    )
                else:
                    await self._room.wait()

    async def _leave(self, process: _SuspectProcess) -> None:
        """Free a place. Dismiss an idle process, because forking another is fast."""
        async with self._room:
            if not process.members and process in self._processes:
                process.dismiss()
                self._processes.remove(process)
            self._room.notify_all()


class _SuspectProcess:
    """The worker's handle on an isolation process. Both sides write JSON lines.

    `pid`: None until the process is ready. `members`: assigned sessions with an unfinished turn.
    """

    def __init__(
        self,
        size: int,
        observer: TurnObserver | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.size = size
        self._observer = observer
        self.pid: int | None = None
        self.members: dict[SessionId, asyncio.Future[bool]] = {}
        self.is_open = True
        self._reader = reader
        self._writer = writer
        self._listening = asyncio.create_task(self._listen(), name="listen to suspects")

    @classmethod
    async def begin(
        cls,
        main: Callable[[socket.socket], None],
        size: int,
        crashes_below: int | None,
        observer: TurnObserver | None,
    ) -> Self:
        """Start a process for up to `size` turns with fewer than `crashes_below` crashes.

        `crashes_below`: None for no limit. Raises OSError or EOFError.
        """
        ours, theirs = socket.socketpair()
        with theirs:  # the first start takes seconds, because the fork server imports everything
            await asyncio.to_thread(_FORKS.Process(target=main, args=(theirs,)).start)
        process = cls(size, observer, *await asyncio.open_connection(sock=ours))
        process._writer.write(_line(crashes_below))
        return process

    def name(self, session_id: SessionId) -> None:
        """Assign the session's next turn."""
        self.members[session_id] = asyncio.get_running_loop().create_future()
        self._writer.write(_line(session_id))

    async def ended(self, session_id: SessionId, within_s: float) -> bool:
        """Wait for the turn to end. Return False if the process died. Kill the process after a timeout."""
        try:
            async with asyncio.timeout(within_s):
                return await self.members[session_id]
        except TimeoutError:
            _log.warning("An isolated turn did not stop in time.", session=session_id, pid=self.pid)
            if self.pid is not None and self.is_open:
                os.kill(self.pid, signal.SIGKILL)
            self.dismiss()
            return False
        finally:
            del self.members[session_id]

    def dismiss(self) -> None:
        """Assign no further turns. The process exits after its current turns."""
        self.is_open = False
        self._writer.close()

    async def _listen(self) -> None:
        with contextlib.suppress(ConnectionError):
            self.pid = _read(await self._reader.readline())
            async for line in self._reader:
                said = _read(line)
                if is_object(said):
                    _tell(self._observer, **said)
                elif (member := self.members.get(said)) is not None and not member.done():
                    member.set_result(True)
        self.dismiss()
        for member in self.members.values():
            if not member.done():
                member.set_result(False)


def run_suspects(settings: Settings, build: BuildAgent, connection: socket.socket) -> None:
    """Run one turn of each assigned session concurrently, then return."""
    os.setsid()  # a terminal's signals are for the worker
    set_up_logging("INFO", known_secrets(settings))
    try:
        asyncio.run(_run_suspects(settings, build, connection))
    except Unavailable as error:  # before a turn was started
        _log.warning("The process for suspected poison turns exited before it ran any.", error=error)


async def _run_suspects(settings: Settings, build: BuildAgent, connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    crashes_below = _read(await reader.readline())
    async with open_ports(settings) as ports, open_lane(ports, crashes_below=crashes_below) as lane:
        lanes = LaneRunner(
            lane,
            ports.shared.live,
            ports.shared.wakeup,
            AgentCatalogue(build, ports).get,
            observer=_Relay(writer),
            word=partial(render_told, ports.domains),
        )
        lanes.drain()
        writer.write(_line(os.getpid()))
        renewing = asyncio.create_task(_renew(lanes))
        async with asyncio.TaskGroup() as running:
            with contextlib.suppress(ConnectionError):  # the worker has exited; finish the turns
                async for line in reader:
                    running.create_task(_run_one(lanes, _read(line), writer))
            signal.alarm(int(_longest_s(settings)))  # the worker no longer kills a turn that takes too long
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing


class _Relay:
    """A `TurnObserver` that reports turn attempts to the worker."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def began(self, session_id: SessionId, work: Work) -> None:
        self._tell("began", session_id=session_id, turn_id=work.turn_id, seq=work.seq, attempts=work.attempts)

    def ended(self, session_id: SessionId, turn_id: TurnId, status: TurnStatus) -> None:
        self._tell("ended", session_id=session_id, turn_id=turn_id, status=status)

    def left(self, turn_id: TurnId, *, again: bool) -> None:
        self._tell("left", turn_id=turn_id, again=again)

    def _tell(self, what: str, **about: object) -> None:
        self._writer.write(_line({"what": what, **about}))


def _tell(observer: TurnObserver | None, what: str, turn_id: TurnId, **about: Any) -> None:
    """Forward an isolation process's report to the observer."""
    if observer is None:
        return
    match what:
        case "began":
            work = Work(turn_id, about["seq"], TurnInput(), about["attempts"], deadline_s=0.0)
            observer.began(about["session_id"], work)
        case "ended":
            observer.ended(about["session_id"], turn_id, TurnStatus(about["status"]))
        case _:
            observer.left(turn_id, again=about["again"])


async def _run_one(lanes: LaneRunner, session_id: SessionId, writer: asyncio.StreamWriter) -> None:
    try:
        await lanes.run(session_id)
    except Unavailable as error:  # not a crash: the lane is released once the store responds
        _log.warning("A session lane was interrupted.", session=session_id, error=error)
    writer.write(_line(session_id))


async def _renew(lanes: LaneRunner) -> None:
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        with contextlib.suppress(Unavailable):
            await lanes.renew()


def _longest_s(settings: Settings) -> float:
    return settings.turn_deadline_s + STARTED_WITHIN_S


def _line(value: SessionId | int | JsonObject | None) -> bytes:
    return orjson.dumps(value) + b"\n"


def _read(line: bytes) -> Any:
    """Parse a line, or return None at the end of the stream."""
    return orjson.loads(line) if line else None
