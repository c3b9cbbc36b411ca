"""The real Flower, started for tests, with a client."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from parley.embedded.ports import free_port
from parley.stack import answers
from tests.integration.chaos.fleet import wait_until
from tests.processes.forked import ROOT, start

GRACE_S = 30


@contextmanager
def flower(environment: dict[str, str], log: Path) -> Iterator[str]:
    """Start `parley serve flower`, and yield its URL."""
    port = free_port()
    process = start(
        ["-m", "parley", "serve", "flower", "--port", str(port)],
        environment={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        log=log,
        imports=["workers.flower_app"],
    )
    try:
        url = f"http://127.0.0.1:{port}"
        is_well = answers(f"{url}/healthcheck")
        wait_until(lambda: is_well(""), within_s=120, what=f"Flower answers, see {log}")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=GRACE_S)


def ask(method: str, url: str, auth: tuple[str, str] | None = None) -> httpx.Response:
    """Send a request with a long timeout for busy machines, without loading certificates each time."""
    return httpx.request(method, url, auth=auth, timeout=GRACE_S, verify=False)


def tasks(url: str, auth: tuple[str, str]) -> dict[str, dict[str, Any]]:
    """Return all tasks that Flower shows, by ID."""
    return ask("GET", f"{url}/api/tasks?limit=100000", auth=auth).json()
