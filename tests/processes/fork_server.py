"""A process that has imported what our programs need, and forks them when told to on a socket.

Each order is a JSON object, `arguments` of the interpreter (``-m module …``), `folder`, `environment` and `imports`,
which stay for those that follow, with the three streams of the child; it is answered with ``started PID``. When a child
has ended that is told by ``ended PID CODE``. Once nobody is left to give orders, what still runs is killed. Nothing is
opened and no thread is started here.
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
"""What a role with a model imports, which takes as long as all else of its start."""
LONGEST_ORDER = 200_000


def fork(order: bytes, streams: tuple[int, int, int]) -> int:
    """Start a child that does as the order says."""
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
    """Take orders until there are no more."""
    running: set[int] = set()
    ended, wakeup = os.pipe()
    for end in (ended, wakeup):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked for the processes ends them
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
    )  # with the airports, most of what its workers and many others compute before they are warm
    make_clusters_once(Path(os.environ[TRAINED_FOLDER]))
    gc.collect()
    serve(socket.socket(fileno=int(sys.argv[1])))
