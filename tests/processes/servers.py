"""Programs of other projects as servers of tests."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redis

from tests.integration.chaos.fleet import wait_until


@contextmanager
def running(
    command: Sequence[str | Path], log: Path, answers: Callable[[], object] | None = None, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the process when the server answers, and terminate it. `options`: of `Popen`."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, **{"cwd": log.parent, **options})

    def is_up() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return answers is None or bool(answers())
        except (redis.ConnectionError, psycopg.OperationalError):
            return False

    try:
        wait_until(is_up, within_s=60, what=f"{command[0]} answers, see {log}")
        yield process
    finally:
        process.terminate()
        process.wait()
