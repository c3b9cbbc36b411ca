"""Faults that a soak test injects. The stack must recover from each fault."""

import random
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil
import redis

from parley.processes import Child
from parley.stack import RunningStack

LONGEST_FREEZE_S = 20.0  # maximum freeze, longer than a lease


TURN_WORKERS = ("worker", "turns-")
"""The name prefixes of processes that run turns."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The stack to inject faults into. `chance`: chooses faults and processes."""

    stack: RunningStack
    chance: random.Random

    def pick(self, *prefixes: str) -> Child:
        """Return a random child process whose name begins with one of the prefixes."""
        named = [one for one in self.stack.children if one.program.name.startswith(prefixes)]
        return self.chance.choice(named)


def kill(*prefixes: str) -> Callable[[Broken], None]:
    """Return a fault that kills and restarts a random process whose name begins with one of the prefixes."""

    def kill_one(broken: Broken) -> None:
        child = broken.pick(*prefixes)
        psutil.Process(child.pid).kill()
        _restart(child)

    return kill_one


def freeze_turn_worker(broken: Broken) -> None:
    """Suspend a turn worker for up to `LONGEST_FREEZE_S` seconds. After a failover, it must not commit turns."""
    process = psutil.Process(broken.pick(*TURN_WORKERS).pid)
    process.suspend()
    time.sleep(broken.chance.uniform(0.5, LONGEST_FREEZE_S))
    process.resume()


def flush_redis(broken: Broken) -> None:
    with redis.Redis.from_url(broken.stack.stores.redis_url) as connection:
        connection.flushall()


def crash_database(broken: Broken) -> None:
    """Shut down PostgreSQL without a checkpoint, so that connections break and the server recovers from the log."""
    child = broken.pick("postgres")
    psutil.Process(child.pid).send_signal(signal.SIGQUIT)
    _restart(child)


def _restart(child: Child) -> None:
    while child.is_running():
        time.sleep(0.02)
    child.start()
    child.await_ready()


# Faults and their weights, by name.
FAULTS: Mapping[str, tuple[Callable[[Broken], None], int]] = {
    "turn worker killed": (kill(*TURN_WORKERS), 10),
    "turn worker frozen": (freeze_turn_worker, 2),
    "worker for all queues killed": (kill("worker"), 3),
    "gateway killed": (kill("gateway"), 2),
    "Redis emptied": (flush_redis, 3),
    "Redis killed": (kill("redis"), 2),
    "PostgreSQL crashed": (crash_database, 2),
}


def break_something(broken: Broken) -> str:
    name = broken.chance.choices(list(FAULTS), [weight for _, weight in FAULTS.values()])[0]
    FAULTS[name][0](broken)
    return name
