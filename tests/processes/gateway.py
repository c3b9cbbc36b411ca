"""A real gateway process for tests that look at it from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from parley.embedded.ports import free_port
from parley.stack import answers
from tests.integration.chaos.fleet import wait_until
from tests.processes.forked import ROOT, start


@contextmanager
def gateway(
    environment: Mapping[str, str], log: Path, *, program: Sequence[str] = ("-m", "gateway", "--port")
) -> Iterator[str]:
    """A gateway on a free port; gives its URL once it answers. `program`: takes the port as its last argument."""
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
