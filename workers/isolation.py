"""Run turns that are suspected of ending their workers apart from all others (RT-26).

After a second crash a turn is run beside other suspects only: most of them have done nothing, and one process
clears many at once. Those that are there when such a process ends go on in smaller company, and at last alone. A turn
that ends a process of its own has done so by itself, and is set aside by whoever looks at its lane next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Mapping
from typing import Any, Final, Self

import orjson

from orchestrator.bootstrap import AgentCatalogue, BuildAgent, open_lane, open_ports
from orchestrator.errors import Unavailable
from orchestrator.ports.wakeup import Wakeup
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings, known_secrets
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.logs import set_up_logging
from orchestrator.types import SessionId
from workers.fork_server import ForkServer

COMPANY: Final[Mapping[int, int]] = {2: 32, 3: 4}
"""By the number of their crashes, so many suspects share a process; whoever has crashed more often has one alone."""
AT_ONCE = 4
"""Processes of one worker; further suspects wait for room in one of them."""
STARTED_WITHIN_S = 60.0
"""Beside the turn's own time: to start, and to write down what came of it."""
RENEW_EVERY_S = 1.0
PAUSE_S = 5.0
"""Between two attempts to start a process that does not start."""

_log = get_logger(__name__)


class Isolation:
    """A worker's side: hands suspects to processes, and ends one in which a turn takes too long."""

    def __init__(self, settings: Settings, server: ForkServer, wakeup: Wakeup) -> None:
        self._longest_s = settings.turn_deadline_s + STARTED_WITHIN_S
        self._server = server
        self._wakeup = wakeup
        self._processes: list[_SuspectProcess] = []
        self._room = asyncio.Condition()
        self._running: dict[SessionId, asyncio.Task[None]] = {}
        self._stopped = False

    def start(self, session_id: SessionId, crashes: int) -> None:
        """Have the session's next turn run apart; asking again while that is under way changes nothing.

        `crashes`: how often a worker has ended while it was at work.
        """
        if session_id not in self._running:
            task = asyncio.create_task(self._run(session_id, crashes), name="a turn under suspicion")
            self._running[session_id] = task
            task.add_done_callback(lambda _: self._running.pop(session_id, None))

    async def close(self) -> None:
        """Leave the processes to themselves: each ends with its turns."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for process in self._processes:
            process.dismiss()

    async def _run(self, session_id: SessionId, crashes: int) -> None:
        try:
            process = await self._join(session_id, crashes)
        except OSError as error:
            _log.error("A process for suspects could not be started.", error=error)
            if isinstance(error, BrokenPipeError):
                self._stop_worker()
            await asyncio.sleep(PAUSE_S)
        else:
            _log.warning(
                "A turn whose workers crashed is run in isolation.", session=session_id, crashes=crashes
            )
            if not await process.ended(session_id, self._longest_s):
                _log.error("A process of suspects ended.", session=session_id, pid=process.pid)
                if process.pid is None:  # the turn was not begun, so it is not to blame
                    await asyncio.sleep(PAUSE_S)
            await self._leave(process)
        await self._wakeup.offer(session_id)

    def _stop_worker(self) -> None:
        """Have the worker replaced, since its server has ended. Told once: a second signal would end it at once."""
        if not self._stopped:
            self._stopped = True
            _log.error("This worker can run no more suspects; it stops, to be replaced.")
            os.kill(os.getpid(), signal.SIGTERM)

    async def _join(self, session_id: SessionId, crashes: int) -> _SuspectProcess:
        """Name the session to a process that takes its like, when there is room."""
        size = COMPANY.get(crashes, 1)
        async with self._room:
            while True:
                for process in self._processes:
                    if process.is_open and process.size == size > len(process.members):
                        process.name(session_id)
                        return process
                if len(self._processes) < AT_ONCE:
                    below = crashes + 1 if size > 1 else None
                    self._processes.append(await _SuspectProcess.begin(self._server, size, below))
                else:
                    await self._room.wait()

    async def _leave(self, process: _SuspectProcess) -> None:
        """Make room; a process that has nothing to do ends, since another is soon forked."""
        async with self._room:
            if not process.members and process in self._processes:
                process.dismiss()
                self._processes.remove(process)
            self._room.notify_all()


class _SuspectProcess:
    """A process that runs suspects, as the worker sees it. Either side writes lines of JSON.

    `pid`: None until it is ready. `members`: the sessions that it was named, until it has run their turns.
    """

    def __init__(self, size: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.size = size
        self.pid: int | None = None
        self.members: dict[SessionId, asyncio.Future[bool]] = {}
        self.is_open = True
        self._reader = reader
        self._writer = writer
        self._listening = asyncio.create_task(self._listen(), name="listen to suspects")

    @classmethod
    async def begin(cls, server: ForkServer, size: int, crashes_below: int | None) -> Self:
        """Start a process for so many suspects at once, which have crashed less often. Raises OSError."""
        process = cls(size, *await asyncio.open_connection(sock=server.fork()))
        process._writer.write(_line(crashes_below))
        return process

    def name(self, session_id: SessionId) -> None:
        """Have it run the session's next turn."""
        self.members[session_id] = asyncio.get_running_loop().create_future()
        self._writer.write(_line(session_id))

    async def ended(self, session_id: SessionId, within_s: float) -> bool:
        """Wait for the end of the turn, or of the process: False. It is killed when neither comes."""
        try:
            async with asyncio.timeout(within_s):
                return await self.members[session_id]
        except TimeoutError:
            _log.warning("A turn under suspicion does not end.", session=session_id, pid=self.pid)
            if self.pid is not None and self.is_open:
                os.kill(self.pid, signal.SIGKILL)
            self.dismiss()
            return False
        finally:
            del self.members[session_id]

    def dismiss(self) -> None:
        """Name nothing more; the process ends with the turns that it has."""
        self.is_open = False
        self._writer.close()

    async def _listen(self) -> None:
        with contextlib.suppress(ConnectionError):
            self.pid = _read(await self._reader.readline())
            async for line in self._reader:
                if (member := self.members.get(_read(line))) is not None and not member.done():
                    member.set_result(True)
        self.dismiss()
        for member in self.members.values():
            if not member.done():
                member.set_result(False)


def run_suspects(settings: Settings, build: BuildAgent, connection: socket.socket) -> None:
    """Be a process that runs one turn of each session that it is named, side by side, and nothing else."""
    set_up_logging("INFO", known_secrets(settings))
    try:
        asyncio.run(_run_suspects(settings, build, connection))
    except Unavailable as error:  # before a turn was begun
        _log.warning("A process for suspects has ended without having run any.", error=error)


async def _run_suspects(settings: Settings, build: BuildAgent, connection: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=connection)
    crashes_below = _read(await reader.readline())
    async with open_ports(settings) as ports, open_lane(ports, crashes_below=crashes_below) as lane:
        lanes = LaneRunner(lane, ports.shared.live, ports.shared.wakeup, AgentCatalogue(build, ports).get)
        lanes.drain()
        writer.write(_line(os.getpid()))
        renewing = asyncio.create_task(_renew(lanes))
        async with asyncio.TaskGroup() as running:
            with contextlib.suppress(ConnectionError):  # the worker has ended; its suspects have not
                async for line in reader:
                    running.create_task(_run_one(lanes, _read(line), writer))
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing


async def _run_one(lanes: LaneRunner, session_id: SessionId, writer: asyncio.StreamWriter) -> None:
    try:
        await lanes.run(session_id)
    except Unavailable as error:  # no crash: the lane is given back once the store answers
        _log.warning("A lane was interrupted.", session=session_id, error=error)
    writer.write(_line(session_id))


async def _renew(lanes: LaneRunner) -> None:
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        with contextlib.suppress(Unavailable):
            await lanes.renew()


def _line(value: SessionId | int | None) -> bytes:
    return orjson.dumps(value) + b"\n"


def _read(line: bytes) -> Any:
    """What a line says; None at the end."""
    return orjson.loads(line) if line else None
