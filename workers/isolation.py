"""Run turns that are suspected of ending their workers, each in a process of its own (RT-26).

A turn that ends such a process has done so by itself, and is set aside by whoever looks at its lane next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys
from asyncio.subprocess import Process
from multiprocessing.spawn import get_preparation_data, prepare

from orchestrator.adapters.threads import run_in_thread
from orchestrator.bootstrap import AgentCatalogue, BuildAgent, open_lane, open_ports
from orchestrator.errors import Unavailable
from orchestrator.ports.wakeup import Wakeup
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings, known_secrets
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.logs import set_up_logging
from orchestrator.types import SessionId

AT_ONCE = 2
"""Processes of one worker; further suspects wait for one of them."""
STARTED_WITHIN_S = 60.0
"""Beside the turn's own time: to start, and to write down what came of it."""
KEPT_FOR_S = 30.0
"""A process that has survived a suspect is there for the next one for so long."""
RENEW_EVERY_S = 1.0
PAUSE_S = 5.0
"""Between two attempts to start a process that does not start."""
ANSWER = b"\n"
"""What a process says when it is ready, and when a turn has ended and it has not."""

_log = get_logger(__name__)


class Isolation:
    """A worker's side: hands suspects to processes, one at a time to each, and ends one that takes too long."""

    def __init__(self, settings: Settings, build: BuildAgent, wakeup: Wakeup) -> None:
        self._settings = settings
        self._build = build
        self._wakeup = wakeup
        self._room = asyncio.Semaphore(AT_ONCE)
        self._running: dict[SessionId, asyncio.Task[None]] = {}
        self._idle: list[Process] = []

    def start(self, session_id: SessionId) -> None:
        """Have the session's next turn run alone; asking again while that is under way changes nothing."""
        if session_id not in self._running:
            task = asyncio.create_task(self._run(session_id), name="a turn of its own process")
            self._running[session_id] = task
            task.add_done_callback(lambda _: self._running.pop(session_id, None))

    async def close(self) -> None:
        """Leave the processes to themselves: each ends with its turn."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for process in list(self._idle):
            self._dismiss(process)

    async def _run(self, session_id: SessionId) -> None:
        async with self._room:
            _log.warning("A turn whose workers ended is run by a process of its own.", session=session_id)
            process = self._idle.pop() if self._idle else await self._begin()
            if process is None:  # the turn was not begun, so it is not to blame
                await asyncio.sleep(PAUSE_S)
                await self._wakeup.offer(session_id)
                return
            assert process.stdin is not None
            assert process.stdout is not None
            answer = b""
            try:
                async with asyncio.timeout(self._settings.turn_deadline_s + STARTED_WITHIN_S):
                    process.stdin.write(pickle.dumps(session_id))
                    await process.stdin.drain()
                    answer = await process.stdout.readline()
            except (TimeoutError, BrokenPipeError, ConnectionResetError):
                _log.warning("A process of a turn of its own does not answer.", session=session_id)
            finally:
                if answer == ANSWER:
                    self._keep(process)
                else:
                    process.stdin.close()
        if answer != ANSWER:
            await self._end(process)
            _log.error("A turn ended its own process.", session=session_id, code=process.returncode)
        await self._wakeup.offer(session_id)

    async def _begin(self) -> Process | None:
        """Start a process, and wait until it can run turns; None when it cannot be brought to that."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workers.isolation"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # what ends this worker and all its kin must not look like the turn's doing
        )
        assert process.stdin is not None
        assert process.stdout is not None
        # What builds agents may stand in the program's main module, which is found by what is said here of it.
        main = get_preparation_data("isolation")
        del main["authkey"]  # a secret of this process, which is not given away
        process.stdin.write(pickle.dumps(main))
        process.stdin.write(pickle.dumps((self._settings, self._build)))
        answer = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STARTED_WITHIN_S):
                answer = await process.stdout.readline()
        if answer == ANSWER:
            return process
        await self._end(process)
        _log.error("A process for a turn of its own could not be started.", code=process.returncode)
        return None

    async def _end(self, process: Process) -> None:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
                process.kill()
        await process.wait()

    def _keep(self, process: Process) -> None:
        self._idle.append(process)
        asyncio.get_running_loop().call_later(KEPT_FOR_S, self._dismiss, process)

    def _dismiss(self, process: Process) -> None:
        """Let a process end that has nothing to do; it does when it can read no more."""
        if process in self._idle:
            self._idle.remove(process)
            assert process.stdin is not None
            process.stdin.close()


async def run_alone(settings: Settings, build: BuildAgent) -> None:
    """Run one turn of each session that is named on the standard input, one after the other, and nothing else."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what the turn's own code prints is no answer
    async with open_ports(settings) as ports, open_lane(ports, alone=True) as lane:
        lanes = LaneRunner(lane, ports.shared.live, ports.shared.wakeup, AgentCatalogue(build, ports).get)
        lanes.drain()
        os.write(answers, ANSWER)
        renewing = asyncio.create_task(_renew(lanes))
        try:
            while (session_id := await run_in_thread(_read_name)) is not None:
                try:
                    await lanes.run(session_id)
                except Unavailable as error:  # no crash: the lane is given back once the store answers
                    _log.warning("A lane was interrupted.", session=session_id, error=error)
                os.write(answers, ANSWER)
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing


def _read_name() -> SessionId | None:
    try:
        return pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the worker itself
    except EOFError:
        return None


async def _renew(lanes: LaneRunner) -> None:
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        with contextlib.suppress(Unavailable):
            await lanes.renew()


def main() -> None:
    """Learn from a worker what agents there are, and run what it names."""
    prepare(pickle.load(sys.stdin.buffer))  # noqa: S301 - written by the worker itself, as what follows
    settings, build = pickle.load(sys.stdin.buffer)  # noqa: S301
    set_up_logging("INFO", known_secrets(settings))
    asyncio.run(run_alone(settings, build))


if __name__ == "__main__":
    main()
