"""Processes started by tests, which end with the tests even if these are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import orjson
import psutil

from parley.processes import has_ended
from tests.integration.chaos.fleet import wait_until

SERVER = """
import sys, time
from tests.processes.fork_server import fork
with open(sys.argv[2], "ab") as log:
    print(fork(sys.argv[1].encode(), (0, log.fileno(), log.fileno())), flush=True)
time.sleep(60)
"""


def test_a_child_ends_with_a_server_that_is_killed(tmp_path: Path) -> None:
    order = {
        "arguments": ["-m", "http.server", "0", "--bind", "127.0.0.1"],
        "folder": str(tmp_path),
        "environment": dict(os.environ),
    }
    command = [sys.executable, "-c", SERVER, orjson.dumps(order).decode(), tmp_path / "log"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        child = psutil.Process(int(server.stdout.readline()))
        wait_until((tmp_path / "log").exists, within_s=20, what="the child has begun")
        server.send_signal(signal.SIGKILL)

    wait_until(lambda: has_ended(child), within_s=20, what="the child has ended")
