"""Pools of workers that start and stop like under a scaler."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from parley.processes import has_ended
from tests.integration.chaos.fleet import STAND_IN, wait_until
from tests.processes.forked import ROOT, start

THREADS = 8


@dataclass
class WorkerPool:
    """A pool of workers. `alive`: workers that were not ended, oldest first."""

    application: str
    environment: Mapping[str, str]
    logs: Path
    started: int = 0
    alive: list[tuple[psutil.Process, Path]] = field(default_factory=list)

    def begin(self) -> psutil.Process:
        """Start a new worker, without waiting until it is ready."""
        name = f"n{self.started}"
        self.started += 1
        log = self.logs / f"{name}.log"
        process = start(
            [
                *("-m", "celery", "-A", self.application, "worker", "-P", "threads", "-c", str(THREADS)),
                *("-Q", "turns,submissions", "-n", f"{name}@forked", "-l", "INFO"),
                *("--without-gossip", "--without-mingle"),
            ],
            environment=self.environment,
            log=log,
        )
        worker = psutil.Process(process.pid)
        self.alive.append((worker, log))
        return worker

    def ready(self) -> list[psutil.Process]:
        """Return the workers that accept sessions, oldest first."""
        return [worker for worker, log in self.alive if log.exists() and b"ready." in log.read_bytes()]

    def forget(self, worker: psutil.Process) -> None:
        """Remove a worker that other code ends."""
        self.alive = [entry for entry in self.alive if entry[0] != worker]

    def end(self, worker: psutil.Process, ending: signal.Signals) -> None:
        self.forget(worker)
        worker.send_signal(ending)


@contextmanager
def worker_pool(
    database_url: str, redis_url: str, logs: Path, *, application: str = STAND_IN, **settings: str
) -> Iterator[WorkerPool]:
    """Yield a pool, and stop its workers at the end. `settings`: environment variables of the workers."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        **settings,
    }
    pool = WorkerPool(application, environment, logs)
    try:
        yield pool
    finally:
        for worker, _ in pool.alive:
            if not has_ended(worker):
                worker.kill()
    for worker, _ in pool.alive:
        wait_until(lambda worker=worker: has_ended(worker), within_s=20, what="every worker has ended")
