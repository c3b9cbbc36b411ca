"""A fleet of real Celery workers on real stores: start, kill, freeze and stop."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.bootstrap import Ports, open_ports
from orchestrator.settings import Settings
from tests.processes.forked import ROOT, ForkedProcess, start

STARTED_WITHIN_S = 180.0
STAND_IN = "tests.integration.chaos.processes.stand_in"


def times_as_long() -> float:
    """Return the slowdown of a process that shares the cores with many others."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def wait_until(
    condition: Callable[[], object],
    *,
    within_s: float,
    what: str,
    steady_s: float = 0.0,
    look_every_s: float = 0.1,
) -> None:
    """Wait for a condition, longer on a busy machine. Fail with the description.

    `steady_s`: minimum time during which each check succeeds. `look_every_s`: interval of checks, longer if a
    check starts a process.
    """
    began_at = time.monotonic()
    since: float | None = None
    while True:
        holds, now = bool(condition()), time.monotonic()
        since = (now if since is None else since) if holds else None
        if since is not None and now - since >= steady_s:
            return
        waited_s = now - began_at
        assert waited_s < within_s * times_as_long(), f"within {waited_s:.0f} s this did not happen: {what}"
        time.sleep(look_every_s)


@dataclass
class Worker:
    """A worker process and its log."""

    process: ForkedProcess
    log: Path
    queues: str

    @property
    def pid(self) -> int:
        return self.process.pid

    def is_ready(self) -> bool:
        assert self.process.poll() is None, f"the worker ended while starting: {self.log.read_text()[-3000:]}"
        return b"ready." in self.log.read_bytes()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def ask_to_stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def stop(self, *, within_s: float = 30) -> int:
        self.ask_to_stop()
        return self.process.wait(within_s)


@dataclass
class Fleet:
    """Workers on one pair of stores. `environment`: their settings."""

    database_url: str
    redis_url: str
    logs: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)

    def start(self, count: int = 1, **options: Any) -> list[Worker]:
        """Launch workers and wait until they are ready."""
        started = [self.launch(**options) for _ in range(count)]
        for worker in started:
            wait_until(
                worker.is_ready, within_s=STARTED_WITHIN_S, what=f"a worker is ready, see {worker.log}"
            )
        return started

    def launch(
        self,
        *,
        application: str = STAND_IN,
        queues: str = "turns,submissions",
        threads: int = 8,
        options: Sequence[str] = (),
    ) -> Worker:
        """Start one worker without waiting."""
        name = f"w{len(self.workers)}"
        log = self.logs / f"{name}.log"
        log.write_bytes(b"")
        process = start(
            [
                *("-m", "celery", "-A", application, "worker", "-P", "threads"),
                *("-c", str(threads), "-Q", queues, "-n", f"{name}-{os.getpid()}@test", "-l", "INFO"),
                *("--without-gossip", "--without-mingle", *options),
            ],
            environment={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "DATABASE_URL": self.database_url,
                "REDIS_URL": self.redis_url,
                **self.environment,
            },
            log=log,
        )
        worker = Worker(process, log, queues)
        self.workers.append(worker)
        return worker

    def ports(self, **more: Any) -> AbstractAsyncContextManager[Ports]:
        """Open the same stores like a client. `more`: its settings."""
        return open_ports(Settings(DATABASE_URL=self.database_url, REDIS_URL=self.redis_url, **more))

    def end(self) -> None:
        """Stop all running workers."""
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.thaw()
                worker.kill()


@contextmanager
def fleet(
    database_url: str, redis_url: str, logs: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Fleet]:
    """Yield a fleet, and stop all of its processes at the end."""
    crew = Fleet(database_url, redis_url, logs, environment or {})
    try:
        yield crew
    finally:
        crew.end()
