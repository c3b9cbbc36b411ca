"""A server process with imported modules, which forks Parley's programs on request over a socket.

Each request is a JSON object with `arguments` of the interpreter (``-m module …``), `folder`, `environment`
and `imports` (kept for later requests), and with the child's three streams. Responses are ``started PID`` and
later ``ended PID CODE``. When all clients are gone, running children are killed. The server itself opens no
files and starts no threads.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
from importlib import import_module
from pathlib import Path

import orjson

from orchestrator.adapters.domains.folder import load_domain
from parley.forking import fork_program
from parley.stack import IMPORTED, TRAINED_FOLDER
from tests.processes.clusters import make_clusters_once

COMMANDS = ("parley.main", *(f"parley.commands.{name}" for name in ("chat", "doctor", "keys", "serve", "up")))
DOMAINS = ("domains.analytics.internal_flows", "domains.travel.weekend")
MODELS = ("anyio._backends._asyncio", "jsonschema", "orchestrator.adapters.models.chat", "truststore")
"""Modules of a role with a model, which take half of its startup time."""
LONGEST_ORDER = 200_000


def fork(order: bytes, streams: tuple[int, int, int]) -> int:
    """Fork a child for the request."""
    told = orjson.loads(order)
    for needed in told.get("imports", ()):
        import_module(needed)
    return fork_program(
        told["arguments"],
        name=told["arguments"][1],
        environment=told["environment"],
        streams=streams,
        dies_by=signal.SIGKILL,
        folder=Path(told["folder"]),
    ).pid


def serve(orders: socket.socket) -> None:
    """Handle requests until the socket closes."""
    running: set[int] = set()
    ended, wakeup = os.pipe()
    for end in (ended, wakeup):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client ends its processes
    with selectors.DefaultSelector() as selector:
        selector.register(ended, selectors.EVENT_READ)
        selector.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == ended:
                    os.read(ended, 4096)
                    _reap(running, orders)
                    continue
                order, streams, _, _ = socket.recv_fds(orders, LONGEST_ORDER, 3)
                if not order:
                    for pid in running:
                        os.kill(pid, signal.SIGKILL)
                    return
                pid = fork(order, (streams[0], streams[1], streams[2]))
                for stream in streams:
                    os.close(stream)
                running.add(pid)
                orders.send(f"started {pid}".encode())


def _reap(running: set[int], orders: socket.socket) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        running.discard(pid)
        orders.send(f"ended {pid} {os.waitstatus_to_exitcode(status)}".encode())


if __name__ == "__main__":
    for needed in (*IMPORTED, *COMMANDS, *DOMAINS, *MODELS):
        import_module(needed)
    load_domain(
        "travel"
    )  # with the airports, most of what workers and many other processes compute at startup
    make_clusters_once(Path(os.environ[TRAINED_FOLDER]))
    gc.collect()
    serve(socket.socket(fileno=int(sys.argv[1])))
