"""Report at the end of a run: CPU time, tests over their budget, and skipped tests with reasons."""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.processes.forked import connected
from tests.scheduling import note_times, unit_of

# Maximum CPU time of a test without the `slow` mark, in seconds, including its child processes. CPU time
# doesn't depend on machine load. The limit is several times the usual time.
BUDGET_CPU_S: Final = 60.0
MEASURED_EVERY_S: Final = 0.2
"""Reading the times of all processes takes a millisecond, so quick tests count for the next test."""
SHOWN: Final = 40
_CPU: Final = "cpu_s"
_SHARED: Final = "set up once"
"""Shared fixtures, whose time doesn't count for their first user."""


class Reporting:
    """A collector that measures tests in their process, and sums up the reports of all processes."""

    def __init__(self) -> None:
        self._units = Counter[str]()
        self._cpu_s = Counter[str]()
        self._files_cpu_s = Counter[str]()
        self._shared: list[tuple[str, float]] = []
        self._slow = set[str]()
        self._began_at: float | None = None
        self._measured_at = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if self._began_at is None:
            self._began_at = cpu_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[object]:
        if fixturedef.scope not in {"session", "package"}:
            return (yield)
        began_at = cpu_s()
        made = yield
        self._shared.append((fixturedef.argname, cpu_s() - began_at))
        return made

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        if call.when == "teardown" and time.monotonic() >= self._measured_at + MEASURED_EVERY_S:
            # The end of a test is the start of the next.
            now, began_at = cpu_s(), self._began_at or 0.0
            self._measured_at = time.monotonic()
            self._began_at, whole = now, now - began_at
            own = whole - sum(taken for _, taken in self._shared)
            report.user_properties += [
                (_CPU, own),
                *((f"{_SHARED}: {name}", taken) for name, taken in self._shared),
            ]
            self._shared = []
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if isinstance(report, pytest.SubtestReport):
            return  # part of its test's duration
        file = report.nodeid.split("::")[0]
        self._units[unit_of(report.nodeid)] += report.duration
        for name, value in report.user_properties if report.when == "teardown" else []:
            taken = max(0.0, float(str(value)))
            if name == _CPU:
                self._cpu_s[report.nodeid] += taken
            if name == _CPU or name.startswith(_SHARED):
                self._files_cpu_s[file if name == _CPU else name] += taken
        if "slow" in report.keywords:
            self._slow.add(report.nodeid)

    def over_budget(self) -> list[str]:
        return [
            f"{name} took {seconds:.0f} s of processor time, and may take {BUDGET_CPU_S:.0f}"
            for name, seconds in self._cpu_s.most_common()
            if seconds > BUDGET_CPU_S and name not in self._slow
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.over_budget() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if session.config.getoption("--note-times", default=False) and not hasattr(
            session.config, "workerinput"
        ):
            note_times(self._units)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if len(self._cpu_s) > SHOWN:
            terminalreporter.section("where the processor time went, that of the processes started with it")
            terminalreporter.write_line(f"{self._files_cpu_s.total():7.1f} s  in all")
            for times in (self._cpu_s, self._files_cpu_s):
                terminalreporter.write_line("")
                for name, seconds in times.most_common(SHOWN):
                    terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
        skipped = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
        if skipped:
            terminalreporter.section("skipped")
            for reason, count in skipped.most_common():
                terminalreporter.write_line(f"{count:5}  {reason}")
        for line in self.over_budget():
            terminalreporter.write_line(line, red=True)


def cpu_s() -> float:
    """Return the CPU seconds of this process and all processes below it, including running processes.

    The fork server's own time counts for the process that started it, and that of its children for the processes that
    asked for them. Without ``/proc``, only this process and its awaited children count.
    """
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ours = sum(each.ru_utime + each.ru_stime for each in used)
    server = connected()
    if server is None:
        return ours + _seconds(_below(os.getpid()))
    forked = [*server.processes.values()]
    ours += sum(process.cpu_s for process in forked)
    running = [process.pid for process in forked if process.returncode is None]
    ours += _seconds(pid for each in running for pid in (each, *_below(each)))
    if server.pid is not None:
        ours += _ticks(server.pid, with_children=False) / os.sysconf("SC_CLK_TCK")
    return ours + _seconds(_below(os.getpid(), without=server.pid))


def _seconds(pids: Iterable[int]) -> float:
    return sum(map(_ticks, pids)) / os.sysconf("SC_CLK_TCK")


def _below(pid: int, without: int | None = None) -> Iterator[int]:
    for child in _children(Path(f"/proc/{pid}/task")):
        if child != without:
            yield child
            yield from _below(child)


def _children(threads: Path) -> list[int]:
    """Return the children of a process's threads. When a thread ends, another inherits its children."""
    while True:
        try:
            return [
                int(word) for each in threads.iterdir() for word in (each / "children").read_text().split()
            ]
        except OSError:
            if not threads.exists():  # neither does the process, or there is no `/proc`
                return []


def _ticks(pid: int, *, with_children: bool = True) -> int:
    """Return the CPU time of a process and its awaited children: four consecutive fields of ``stat``, see
    proc(5).
    """
    last = 15 if with_children else 13
    try:
        return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:last]))
    except OSError:
        return 0


def _reason(report: pytest.TestReport) -> str:
    """Return only the reason, so that tests with the same reason are counted together."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
