"""Worker processes that are replaced as soon as they die: ``python -m tests.integration.chaos.farm COUNT``.

Each is a real `WorkerProcess`, forked from a parent that has imported everything and opened nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from orchestrator.bootstrap import Ports, build_agent
from orchestrator.settings import load_settings
from orchestrator.types import SessionId
from tests.integration.chaos.dying import DyingAgent
from workers.process import WorkerProcess


def build(name: str, ports: Ports) -> DyingAgent:
    return DyingAgent(build_agent(name, ports))


def work() -> None:
    """Take sessions until killed."""
    process = WorkerProcess(load_settings(), build)
    while True:
        process.run_session(SessionId("nobody"))


def keep(count: int) -> None:
    """Keep so many workers alive until told to stop."""
    children: set[int] = set()

    def stop(*_: Any) -> None:
        for child in children:
            os.kill(child, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, stop)
    while True:
        while len(children) < count:
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                work()
            children.add(child)
        ended, _ = os.wait()
        children.discard(ended)


if __name__ == "__main__":
    keep(int(sys.argv[1]))
