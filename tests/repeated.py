"""Run the whole suite several times in a row, every second time beside processes that keep all cores busy.

A test that passes by luck shows itself in such a series. It ends with the first run that is red, whose output is kept.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BUSY: Final = "while True: pass"
_ENDED: Final = re.compile(r"^=+ (.*\d+ (?:passed|failed|error).*) =+$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.repeated")
    parser.add_argument("--times", type=int, default=10, help="runs in a row")
    parser.add_argument("--busy", choices=("never", "every-second", "always"), default="every-second")
    parser.add_argument("--into", type=Path, default=ROOT / ".tmp" / "repeated", help="folder of the outputs")
    parser.add_argument("tests", nargs="*", help="what to give pytest; the whole suite by default")
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    print(f"As {'root' if os.geteuid() == 0 else 'an ordinary account'}, {os.cpu_count()} cores.", flush=True)
    for number in range(1, given.times + 1):
        busy = given.busy == "always" or (given.busy == "every-second" and number % 2 == 0)
        output = given.into / f"{number}.log"
        began = time.monotonic()
        code = _run_beside(os.cpu_count() or 1 if busy else 0, given.tests, output)
        beside = "beside busy processes" if busy else "alone"
        print(f"{number:3}  {beside:22}  {time.monotonic() - began:5.0f} s  {_how_ended(output)}", flush=True)
        if code != 0:
            print(f"Run {number} was red: {output}", flush=True)
            return code
    print(f"{given.times} of {given.times} runs were green.", flush=True)
    return 0


def _run_beside(others: int, tests: list[str], output: Path) -> int:
    """Run the tests beside so many processes that are always at work; gives pytest's exit code."""
    command = [sys.executable, "-m", "pytest", "--numprocesses", "auto", *tests]
    with _busy(others), output.open("wb") as log:
        return subprocess.run(command, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, check=False).returncode


@contextmanager
def _busy(count: int) -> Iterator[None]:
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _how_ended(output: Path) -> str:
    found = _ENDED.findall(output.read_text("utf-8", "replace"))
    return found[-1] if found else "The tests did not run."


if __name__ == "__main__":
    sys.exit(main())
