"""Workers that are there at once, as a scaler would like them: the tests' side of `forked_workers`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from parley.processes import has_ended
from tests.integration.chaos.fleet import ROOT, STAND_IN, wait_until


@dataclass
class WorkerPool:
    """`alive`: the workers that nobody has ended, the oldest first."""

    process: subprocess.Popen[str]
    logs: Path
    started: int = 0
    alive: list[tuple[psutil.Process, Path]] = field(default_factory=list)

    def begin(self) -> psutil.Process:
        """A new worker; it is not ready yet."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        name = f"n{self.started}"
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        self.started += 1
        worker = psutil.Process(int(self.process.stdout.readline()))
        self.alive.append((worker, self.logs / f"{name}.log"))
        return worker

    def ready(self) -> list[psutil.Process]:
        """The workers that take sessions, the oldest first."""
        return [worker for worker, log in self.alive if log.exists() and b"ready." in log.read_bytes()]

    def forget(self, worker: psutil.Process) -> None:
        """Take note that somebody else ends a worker."""
        self.alive = [entry for entry in self.alive if entry[0] != worker]

    def end(self, worker: psutil.Process, ending: signal.Signals) -> None:
        self.forget(worker)
        worker.send_signal(ending)


@contextmanager
def worker_pool(
    database_url: str, redis_url: str, logs: Path, *, application: str = STAND_IN, **settings: str
) -> Iterator[WorkerPool]:
    """A pool that leaves no worker behind; `settings` are variables of its workers' environment."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        **settings,
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integration.chaos.forked_workers", application, str(logs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    pool = WorkerPool(process, logs)
    with process:
        try:
            yield pool
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)
    for worker, _ in pool.alive:
        wait_until(lambda worker=worker: has_ended(worker), within_s=20, what="every worker has ended")
