"""The end of a test run: times, skips, and the time budget of each test."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from tests.reporting import cpu_s

ROOT = Path(__file__).parents[2]
TESTS = """
import time
import pytest
import tests.reporting
tests.reporting.BUDGET_CPU_S = {budget}
tests.reporting.SLOWEST = 4

@pytest.fixture(scope="session")
def prepared():
    until = time.process_time() + 0.6
    while time.process_time() < until:
        pass

def test_computes(prepared):
    sum(range(1_000_000))

@pytest.mark.slow
def test_computes_for_long():
    sum(range(1_000_000))

@pytest.mark.parametrize("number", range(3))
def test_needs_a_browser(number):
    pytest.skip("There is no browser.")
"""


def run(folder: Path, budget: float) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(
        "from tests.reporting import Reporting\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'slow: long')\n"
        "    config.pluginmanager.register(Reporting())\n"
    )
    (folder / "test_it.py").write_text(TESTS.format(budget=budget))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder}",
        str(folder),
    ]
    plain = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # without the time of plugins
    return subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """Return a run in which no test exceeds its budget."""
    return run(tmp_path_factory.mktemp("within"), budget=100)


def test_skips_are_counted_by_their_reason(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout
    assert "    3  There is no browser." in done.stdout


def test_a_test_over_its_budget_fails_the_run_unless_it_is_slow(tmp_path: Path) -> None:
    done = run(tmp_path, budget=0.0001)

    assert done.returncode == 1
    assert "test_computes took 0 s of processor time, and may take 0" in done.stdout
    assert "test_computes_for_long took" not in done.stdout


COMPUTE_HALF_A_SECOND = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()"
BY_ANOTHER = ("-c", "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])")


@pytest.mark.parametrize("program", [("-c",), BY_ANOTHER], ids=["its own", "started by another"])
def test_what_processes_use_counts_while_they_run_and_afterwards(program: tuple[str, ...]) -> None:
    before = cpu_s()
    command = [sys.executable, *program, COMPUTE_HALF_A_SECOND]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as computing:
        assert computing.stdout is not None
        assert computing.stdout.readline()
        while_it_runs = cpu_s()
        computing.communicate(b"\n")

    assert while_it_runs >= before + 0.4
    assert cpu_s() >= while_it_runs


def test_threads_that_end_hide_no_process() -> None:
    """Otherwise, all of the process's CPU time would count for the test that runs when it reappears."""
    with subprocess.Popen(
        [sys.executable, "-c", COMPUTE_HALF_A_SECOND], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as computing:
        assert computing.stdout is not None
        assert computing.stdout.readline()
        with ThreadPoolExecutor(1) as threads:
            before, read = cpu_s(), threads.submit(lambda: [cpu_s() for _ in range(300)])
            while not read.done():
                Thread(target=int).start()
        computing.communicate(b"\n")

    assert min(read.result()) >= before


def test_what_all_share_is_told_apart_from_its_first_user(done: subprocess.CompletedProcess[str]) -> None:
    told = {
        line.split(maxsplit=2)[2]: float(line.split()[0])
        for line in done.stdout.splitlines()
        if " s  " in line
    }
    assert told["set up once: prepared"] >= 0.6 > told["test_it.py"]
