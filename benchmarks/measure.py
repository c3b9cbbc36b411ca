"""Measure wall-clock time, and the CPU time of workers, PostgreSQL and Redis."""

import statistics
import time
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

PROGRAMS = {"postgres": ("postgres",), "redis": ("redis-server", "valkey-server")}
GROUPS = ("worker", *PROGRAMS)


@dataclass
class Measurement:
    """The cost of one phase of one candidate. `cpu_s`: CPU seconds by process group (see `GROUPS`)."""

    turns: int
    wall_s: float
    cpu_s: dict[str, float]
    latencies_s: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.turns / self.wall_s

    @property
    def p50_ms(self) -> float:
        return 1000 * statistics.median(self.latencies_s) if self.latencies_s else float("nan")

    def cpu_us(self, group: str) -> float:
        return 1e6 * self.cpu_s[group] / self.turns


class Phase:
    """A measurement of workers and stores, from the creation of this object until `end` is called.

    The stores must be child processes of this process.
    """

    def __init__(self, workers: list[psutil.Process]) -> None:
        children = psutil.Process().children()
        stores = {
            name: [child for child in children if child.name().startswith(programs)]
            for name, programs in PROGRAMS.items()
        }
        assert all(stores.values()), "a store's processes were not found"
        self._groups = {GROUPS[0]: workers, **stores}
        self._before = self._read()
        self._began = time.perf_counter()

    def end(self, turns: int, latencies_s: list[float] | None = None) -> Measurement:
        wall_s = time.perf_counter() - self._began
        spent = {name: after - self._before[name] for name, after in self._read().items()}
        return Measurement(turns, wall_s, spent, latencies_s or [])

    def _read(self) -> dict[str, float]:
        return {name: sum(map(cpu_s, processes)) for name, processes in self._groups.items()}


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU seconds of a process and its descendants, including those that have exited."""
    while process.is_running():
        # If a descendant exits meanwhile, read again: its parent then has its time.
        with suppress(psutil.NoSuchProcess):
            tree = (process, *process.children(recursive=True))
            return sum(sum(one.cpu_times()[:4]) for one in tree)  # with that of exited children
    raise psutil.NoSuchProcess(process.pid)
