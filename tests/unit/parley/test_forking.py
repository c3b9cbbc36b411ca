"""Forked programs, which find the same as started programs and nothing of their parents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.processes.forked import ROOT

LOOKING = """
import json, os, signal, sys
heard = {name: signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGINT)}
print(json.dumps({
    "name": __name__, "arguments": sys.argv[1:], "variables": dict(os.environ), "folder": os.getcwd(),
    "input": sys.stdin.read(), "leads": os.getsid(0) == os.getpid(),
    "heard": list(heard.values()) == [signal.SIG_DFL, signal.default_int_handler],
    "open": sum(os.path.exists(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")),
}))
"""
FORKING = """
import os, signal, sys, tempfile
from parley.forking import can_fork, fork_program
signal.signal(signal.SIGTERM, lambda *_: None)
kept = tempfile.TemporaryDirectory()
print("before")
assert can_fork()
child = fork_program(("-m", "program", "a word"), name="sample", environment={"GIVEN": "yes"}, streams=(0, 1, 2),
                     dies_by=signal.SIGKILL)
print(child.wait(), os.path.exists(kept.name), flush=True)
kept.cleanup()
"""
ENDING = """
import os, signal
from parley.forking import fork_program
child = fork_program(("-m", "program"), name="sample", environment=os.environ, streams=(0, 1, 2),
                     dies_by=signal.SIGKILL)
print(int(child.wait() or 0))
"""


def surroundings(folder: Path, code: str) -> dict[str, str]:
    """Return an environment in which the code is a module."""
    (folder / "program.py").write_text(code)
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def test_it_finds_what_it_was_given_and_nothing_of_its_parent(tmp_path: Path) -> None:
    """The parent's unprinted output is printed once, and the child doesn't remove the parent's temporary files."""
    forked = subprocess.run(
        [sys.executable, "-c", FORKING],
        env=surroundings(tmp_path, LOOKING),
        cwd=tmp_path,
        input="said",
        capture_output=True,
        text=True,
        check=True,
    )

    before, told, after = forked.stdout.splitlines()
    assert (before, after) == ("before", "0 True")
    assert orjson.loads(told) == {
        "name": "__main__",
        "arguments": ["a word"],
        "variables": {"GIVEN": "yes"},
        "folder": str(tmp_path),
        "input": "said",
        "leads": True,
        "heard": True,
        "open": 3,
    }


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Fork the program. Its exit status is the last line."""
    command = [sys.executable, "-c", ENDING]
    given = {"env": surroundings(folder, code), "cwd": folder, "stdin": subprocess.DEVNULL}
    return subprocess.run(command, **given, capture_output=True, text=True, check=True)


@pytest.mark.parametrize(
    ("code", "ending", "says"),
    [
        ("pass", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('no such domain')", 1, "no such domain\n"),
        (
            "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
            0,
            "",
        ),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", -15, ""),
    ],
)
def test_it_ends_as_the_interpreter_does(tmp_path: Path, code: str, ending: int, says: str) -> None:
    ended = run(tmp_path, code)

    assert (ended.stdout, ended.stderr) == (f"late\n{ending}\n" if "late" in code else f"{ending}\n", says)


def test_an_error_that_nobody_expected_is_printed(tmp_path: Path) -> None:
    ended = run(tmp_path, "1 / 0")

    assert ended.stdout == "1\n"
    assert ended.stderr.endswith("ZeroDivisionError: division by zero\n")
