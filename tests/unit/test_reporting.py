"""The end of a run: times, skips, and the budget that a test has to keep to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest
import tests.reporting
tests.reporting.BUDGET_CPU_S = {budget}

def test_computes():
    sum(range(3_000_000))

@pytest.mark.slow
def test_computes_for_long():
    sum(range(3_000_000))

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
    }  # a second's worth of plugins has no part in it
    return subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=False)


def test_skips_are_counted_by_their_reason(tmp_path: Path) -> None:
    done = run(tmp_path, budget=100)

    assert done.returncode == 0, done.stdout
    assert "    3  There is no browser." in done.stdout


def test_a_test_over_its_budget_fails_the_run_unless_it_is_slow(tmp_path: Path) -> None:
    done = run(tmp_path, budget=0.0001)

    assert done.returncode == 1
    assert "test_computes took 0 s of processor time, and may take 0" in done.stdout
    assert "test_computes_for_long took" not in done.stdout
