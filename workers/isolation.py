"""Run turns that are suspected of ending their workers, each in a process of its own (RT-26).

A turn that ends such a process has done so by itself, and is set aside by whoever looks at its lane next.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import sys

from orchestrator.adapters.postgres.migrate import ping_schema
from orchestrator.bootstrap import AgentCatalogue, BuildAgent, open_lane, open_ports
from orchestrator.ports.wakeup import Wakeup
from orchestrator.runtime.lane import LaneRunner
from orchestrator.settings import Settings, known_secrets
from orchestrator.telemetry import get_logger
from orchestrator.telemetry.logs import set_up_logging
from orchestrator.types import SessionId

AT_ONCE = 1
"""Processes of one worker; further suspects wait for it."""
STARTED_WITHIN_S = 60.0
"""Beside the turn's own time: to start, and to write down what came of it."""
RENEW_EVERY_S = 1.0

_log = get_logger(__name__)


class Isolation:
    """A worker's side: starts the processes, one after the other, and ends one that takes too long."""

    def __init__(self, settings: Settings, build: BuildAgent, wakeup: Wakeup) -> None:
        self._settings = settings
        self._build = build
        self._wakeup = wakeup
        self._room = asyncio.Semaphore(AT_ONCE)
        self._running: dict[SessionId, asyncio.Task[None]] = {}

    def start(self, session_id: SessionId) -> None:
        """Have the session's next turn run alone; asking again while that is under way changes nothing."""
        if session_id not in self._running:
            task = asyncio.create_task(self._run(session_id), name="a turn of its own process")
            self._running[session_id] = task
            task.add_done_callback(lambda _: self._running.pop(session_id, None))

    async def close(self) -> None:
        """Leave the processes to themselves: each ends with its turn."""
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _run(self, session_id: SessionId) -> None:
        async with self._room:
            _log.warning("A turn whose workers ended is run by a process of its own.", session=session_id)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "workers.isolation"),
                stdin=asyncio.subprocess.PIPE,
                start_new_session=True,  # what ends this worker and all its kin must not look like the turn's doing
            )
            given = pickle.dumps((self._settings, self._build, session_id))
            try:
                async with asyncio.timeout(self._settings.turn_deadline_s + STARTED_WITHIN_S):
                    await process.communicate(given)
            except TimeoutError:
                process.kill()
                await process.wait()
        if process.returncode:
            _log.error("A turn ended its own process.", session=session_id, code=process.returncode)
        await self._wakeup.offer(session_id)


async def run_alone(settings: Settings, build: BuildAgent, session_id: SessionId) -> None:
    """Run one turn of a session, and nothing else."""
    async with open_ports(settings) as ports, open_lane(ports, alone=True) as lane:
        await ping_schema(ports.database)
        lanes = LaneRunner(lane, ports.live, ports.wakeup, AgentCatalogue(build, ports).get)
        lanes.drain()
        renewing = asyncio.create_task(_renew(lanes))
        try:
            await lanes.run(session_id)
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await renewing


async def _renew(lanes: LaneRunner) -> None:
    while True:
        await asyncio.sleep(RENEW_EVERY_S)
        await lanes.renew()


def main() -> None:
    """Read from a worker what to run, and run it."""
    settings, build, session_id = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by the worker itself
    set_up_logging(os.environ.get("PARLEY_LOG_LEVEL", "INFO"), known_secrets(settings))
    asyncio.run(run_alone(settings, build, session_id))


if __name__ == "__main__":
    main()
