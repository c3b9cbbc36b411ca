"""A real gateway, and a whole stack, for tests from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from parley.embedded.ports import free_port
from parley.stack import answers
from tests.integration.chaos.fleet import wait_until
from tests.processes.forked import ROOT, ForkedProcess, start


@contextmanager
def gateway(
    environment: Mapping[str, str], log: Path, *, program: Sequence[str] = ("-m", "gateway", "--port")
) -> Iterator[str]:
    """Yield the URL of a gateway on a free port. `program`: takes the port as its last argument."""
    port = free_port()
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    process = start([*program, str(port)], environment=surroundings, log=log)
    url = f"http://127.0.0.1:{port}"
    is_live = answers(f"{url}/health/live")
    try:
        wait_until(lambda: is_live(""), within_s=60, what=f"the gateway answers, see {log}")
        yield url
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def stack(
    data_dir: Path, environment: Mapping[str, str], *options: str
) -> Iterator[tuple[ForkedProcess, str]]:
    """Yield a ready ``parley up`` with its output, and stop it at the end."""
    log = data_dir.with_suffix(".said")
    log.unlink(missing_ok=True)
    command = ("-m", "parley", "up", "--data-dir", str(data_dir), "--port", str(free_port()), *options)
    up = start(command, environment=environment, log=log)
    try:
        wait_until(
            lambda: "\nReady." in log.read_text() or up.poll() is not None,
            within_s=120,
            what=f"up, see {log}",
        )
        assert up.poll() is None, log.read_text()
        yield up, log.read_text()
    finally:
        up.terminate()
        up.wait(60)
