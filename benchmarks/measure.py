"""The cost of a set of processes: CPU seconds of workers, PostgreSQL and Redis, and wall time."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

import psutil


@dataclass
class Meter:
    """Groups of processes by name, each with its descendants."""

    groups: dict[str, list[psutil.Process]]

    def read(self) -> dict[str, float]:
        """CPU seconds so far, by group."""
        return {name: sum(map(cpu_s, processes)) for name, processes in self.groups.items()}


GROUPS = ("worker", "postgres", "redis")


def meter_of(workers: list[psutil.Process]) -> Meter:
    """Workers and the stores that this process runs."""
    children = psutil.Process().children()
    stores = {name: [child for child in children if child.name().startswith(name)] for name in GROUPS[1:]}
    return Meter({GROUPS[0]: workers, **stores})


@dataclass
class Measurement:
    """One phase of one candidate."""

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
        """CPU microseconds per turn."""
        return 1e6 * self.cpu_s[group] / self.turns


class Phase:
    """Measures from its start until `end`."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._before = meter.read()
        self._began = time.perf_counter()

    def end(self, turns: int, latencies_s: list[float] | None = None) -> Measurement:
        wall_s = time.perf_counter() - self._began
        after = self._meter.read()
        spent = {name: after[name] - before for name, before in self._before.items()}
        return Measurement(turns, wall_s, spent, latencies_s or [])


def cpu_s(process: psutil.Process) -> float:
    """CPU seconds of a process and its descendants so far."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        times = one.cpu_times()
        total += times.user + times.system
    return total
