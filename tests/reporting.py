"""What a run says at its end: where its time went, which tests are over their budget, what was skipped and why."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest

from tests.scheduling import note_times, unit_of

# Seconds of processor time, of this process and of those it started and waited for, that a test may take unless it
# is marked `slow`. Processor time, since a busy machine must change nothing; several times what it takes on a good one.
BUDGET_CPU_S: Final = 150.0
SLOWEST: Final = 20
_CPU: Final = "cpu_s"


class Reporting:
    """Measures tests where they run, and adds up what all of them report."""

    def __init__(self) -> None:
        self._seconds = Counter[str]()
        self._folders = Counter[str]()
        self._units = Counter[str]()
        self._cpu_s = Counter[str]()
        self._slow = set[str]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._began_at = _cpu_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report = yield
        if call.when == "call":  # what a fixture's processes have used by the time they end is nobody's alone
            report.user_properties.append((_CPU, _cpu_s() - self._began_at))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] += report.duration
        self._units[unit_of(report.nodeid)] += report.duration
        self._folders["/".join(report.nodeid.split("::")[0].split("/")[:3])] += report.duration
        self._cpu_s[report.nodeid] += sum(
            float(str(value)) for name, value in report.user_properties if name == _CPU
        )
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
        if len(self._seconds) > SLOWEST:
            terminalreporter.section("where the time went")
            for times in (self._folders, self._seconds):
                for name, seconds in times.most_common(SLOWEST):
                    cpu = f"({self._cpu_s[name]:.1f} s of processor time)" if name in self._cpu_s else ""
                    terminalreporter.write_line(f"{seconds:7.1f} s  {name} {cpu}".rstrip())
                terminalreporter.write_line("")
        skipped = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
        if skipped:
            terminalreporter.section("skipped")
            for reason, count in skipped.most_common():
                terminalreporter.write_line(f"{count:5}  {reason}")
        for line in self.over_budget():
            terminalreporter.write_line(line, red=True)


def _cpu_s() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _reason(report: pytest.TestReport) -> str:
    """Return the reason alone, so that tests with the same one are counted together."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
