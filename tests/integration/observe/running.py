"""A real gateway process for tests that look at it from outside."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import ROOT, wait_until


@contextmanager
def gateway(environment: dict[str, str], log: Path) -> Iterator[str]:
    port = free_port()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(url), within_s=60, what=f"the gateway answers, see {log}")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/live").is_success
    except httpx.HTTPError:
        return False
