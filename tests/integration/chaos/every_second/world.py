"""Workers on their own stores, two with clocks two hours apart, and all faults that can happen."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import redis

from orchestrator.adapters.postgres.migrate import migrate
from parley.embedded import Store, open_database, open_redis
from parley.processes import has_ended
from tests.integration.chaos.every_second.cutting import Cutter, cutter
from tests.integration.chaos.fleet import STAND_IN, wait_until
from tests.processes.forked import ROOT, start

HOUR_S = 3600
CLOCKS_S: Final = (-HOUR_S, HOUR_S, 0, 0)
"""Clock offset of each worker."""
REDIS_FROZEN_S = 4.0
DOWN_S = 60.0
CHOICES = 8
"""Number of candidate faults per second. The first that hits nothing already broken is caused."""
CUT_WITHIN_S = 10.0
EACH_ONCE_WITHIN_S = 120
LEAST_WORKERS = 2
"""Minimum number of running workers before another is killed or frozen, so that the run progresses."""


@dataclass
class Worker:
    """A place for a worker. A dead worker is replaced."""

    process: psutil.Process
    log: Path
    frozen: bool = False

    def is_at_work(self) -> bool:
        return not self.frozen and not has_ended(self.process) and b"ready." in self.log.read_bytes()


@dataclass
class World:
    """The stores and workers.

    `longest_freeze_s`: maximum freeze of a worker, in seconds. `happened`: faults so far. `busy`: targets of
    current faults, which no other fault breaks.
    """

    redis: Store
    database: Store
    cutter: Cutter
    start_worker: Callable[[int, Path], psutil.Process]
    logs: Path
    chance: random.Random
    longest_freeze_s: float
    workers: list[Worker] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    busy: set[str] = field(default_factory=set)
    _started: int = 0

    def begin(self) -> None:
        self.workers = [self._worker(place) for place in range(len(CLOCKS_S))]
        for worker in self.workers:
            wait_until(worker.is_at_work, within_s=120, what=f"a worker is ready, see {worker.log}")

    def end(self) -> None:
        for worker in self.workers:
            _end(worker.process)

    def _worker(self, place: int) -> Worker:
        log = self.logs / f"w{self._started}.log"
        self._started += 1
        log.write_bytes(b"")
        return Worker(self.start_worker(CLOCKS_S[place], log), log)

    def _pick(self) -> int | None:
        able = [place for place, worker in enumerate(self.workers) if worker.is_at_work()]
        return self.chance.choice(able) if len(able) > LEAST_WORKERS else None

    # Each fault returns after recovery, or returns False if it could not be caused now.

    def kill_worker(self) -> bool:
        place = self._pick()
        if place is None:
            return False
        _end(self.workers[place].process)
        self.workers[place] = self._worker(place)
        return True

    def freeze_worker(self) -> bool:
        place = self._pick()
        if place is None:
            return False
        worker = self.workers[place]
        worker.frozen = True
        worker.process.suspend()
        time.sleep(self.chance.uniform(0.5, self.longest_freeze_s))
        worker.process.resume()
        worker.frozen = False
        return True

    def flush_redis(self) -> bool:
        with redis.Redis.from_url(self.redis.url, socket_timeout=5) as connection:
            connection.flushall()
        return True

    def freeze_redis(self) -> bool:
        process = psutil.Process(self.redis.child.pid)
        process.suspend()
        time.sleep(REDIS_FROZEN_S)
        process.resume()
        return True

    def restart_redis(self) -> bool:
        return self._restart(self.redis, signal.SIGKILL)

    def take_redis_down(self) -> bool:
        return self._restart(self.redis, signal.SIGKILL, pause_s=DOWN_S)

    def restart_database(self) -> bool:
        return self._restart(self.database, signal.SIGINT)

    def crash_database(self) -> bool:
        return self._restart(self.database, signal.SIGQUIT)

    def cut_before_commit(self) -> bool:
        return self._cut("before")

    def cut_after_commit(self) -> bool:
        return self._cut("after")

    def _cut(self, moment: str) -> bool:
        """Wait until a commit was broken. The request alone breaks nothing."""
        before, ends_at = self.cutter.cuts[moment], time.monotonic() + CUT_WITHIN_S
        self.cutter.cut(moment)
        while self.cutter.cuts[moment] == before and time.monotonic() < ends_at:
            time.sleep(0.02)
        self.cutter.withdraw()
        return self.cutter.cuts[moment] > before

    def _restart(self, store: Store, ending: signal.Signals, *, pause_s: float = 0.0) -> bool:
        psutil.Process(store.child.pid).send_signal(ending)
        while store.child.is_running():
            time.sleep(0.02)
        time.sleep(pause_s)
        store.child.start()
        store.child.await_ready()
        return True


@dataclass(frozen=True)
class Fault:
    """A kind of fault. `target`: the broken part, one at a time. `often`: relative frequency."""

    do: Callable[[World], bool]
    target: str
    often: int


DOWN: Final = "Redis down for a minute"
# Cuts come first, because they need running turns.
FAULTS: Final[Mapping[str, Fault]] = {
    "cut before COMMIT": Fault(World.cut_before_commit, "cut", 3),
    "cut after COMMIT": Fault(World.cut_after_commit, "cut", 3),
    "worker killed": Fault(World.kill_worker, "killed", 8),
    "worker frozen": Fault(World.freeze_worker, "frozen", 3),
    "Redis emptied": Fault(World.flush_redis, "redis", 4),
    "Redis frozen": Fault(World.freeze_redis, "redis", 1),
    "Redis killed": Fault(World.restart_redis, "redis", 1),
    DOWN: Fault(World.take_redis_down, "redis", 0),
    "PostgreSQL restarted": Fault(World.restart_database, "postgres", 1),
    "PostgreSQL crashed": Fault(World.crash_database, "postgres", 1),
}


async def break_again_and_again(world: World, stopping: asyncio.Event, *, down_after: int | None) -> None:
    """Cause a fault every second, each kind at least once. Everything is recovered at the end.

    `down_after`: number of faults before Redis is stopped for a minute.
    """
    names, weights = zip(*((name, fault.often) for name, fault in FAULTS.items()), strict=True)
    async with asyncio.TaskGroup() as lasting:
        for _ in range(EACH_ONCE_WITHIN_S):
            await asyncio.sleep(1.0)
            missing = [name for name, fault in FAULTS.items() if fault.often and not world.happened[name]]
            if not missing:
                break
            _cause_one(world, lasting, missing)
        while not stopping.is_set():
            chosen = world.chance.choices(names, weights, k=CHOICES)
            if down_after is not None and world.happened.total() >= down_after and "redis" not in world.busy:
                chosen, down_after = [DOWN], None
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), 1.0)
            _cause_one(world, lasting, chosen)


def _cause_one(world: World, lasting: asyncio.TaskGroup, names: Sequence[str]) -> None:
    """Cause the first of these faults whose target is not already broken."""
    name = next((name for name in names if FAULTS[name].target not in world.busy), None)
    if name is not None:
        world.busy.add(FAULTS[name].target)
        lasting.create_task(_cause(world, name))


async def _cause(world: World, name: str) -> None:
    fault = FAULTS[name]
    if await asyncio.to_thread(fault.do, world):
        world.happened[name] += 1
    world.busy.discard(fault.target)


@contextmanager
def world(folder: Path, seed: int, longest_freeze_s: float) -> Iterator[World]:
    """Start everything, and stop everything at the end."""
    with ExitStack() as stack:
        redis_store = stack.enter_context(open_redis(folder, durable=False))
        # Durable: committed data must survive a crash.
        database = stack.enter_context(open_database(folder, durable=True))
        migrate(database.url)
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        between, address = stack.enter_context(cutter(database.url, sockets))
        library = _compile_clock(folder)
        settings = {"DATABASE_URL": address, "REDIS_URL": redis_store.url}

        def start_worker(shift_s: int, log: Path) -> psutil.Process:
            return _start_worker(shift_s, log, library, {**os.environ, "PYTHONPATH": str(ROOT), **settings})

        (folder / "workers").mkdir()
        all_of_it = World(
            redis_store,
            database,
            between,
            start_worker,
            folder / "workers",
            random.Random(seed),
            longest_freeze_s,
        )
        stack.callback(all_of_it.end)
        all_of_it.begin()
        yield all_of_it


def _compile_clock(folder: Path) -> Path:
    library = folder / "shifted_clock.so"
    source = Path(__file__).with_name("shifted_clock.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def _start_worker(shift_s: int, log: Path, library: Path, environment: dict[str, str]) -> psutil.Process:
    """Start a worker. A worker with a clock offset cannot be forked, because its library must be loaded first."""
    arguments = [
        *("-m", "celery", "-A", STAND_IN, "worker", "-P", "threads", "-c", "8"),
        *("-Q", "turns,submissions", "-n", f"{log.stem}@clocks", "-l", "INFO"),
        *("--without-gossip", "--without-mingle"),
    ]
    if not shift_s:
        return psutil.Process(start(arguments, environment=environment, log=log).pid)
    preloaded = {**environment, "LD_PRELOAD": str(library), "CLOCK_SHIFT_S": str(shift_s)}
    with log.open("ab") as output:
        return psutil.Popen(
            [sys.executable, *arguments], stdout=output, stderr=output, env=preloaded, cwd=ROOT
        )


def _end(process: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        process.kill()
        process.wait()
