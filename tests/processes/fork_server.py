"""A server process with imported modules, which forks Parley's programs on request.

All test processes of a run connect to one server, because its imports take seconds. Each request is a JSON object
with `arguments` of the interpreter (``-m module …``), `folder`, `environment` and `imports` (kept for later
requests), and with the child's three streams. Responses are ``started PID`` and later ``ended PID CODE CPU_S``. When
a client is gone, its running children are killed. The server ends with its last client, opens no files and starts
no threads.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress
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


class Server:
    """The clients, each with its running children."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._children: dict[socket.socket, set[int]] = {}

    def serve(self) -> None:
        """Handle requests until the last client is gone."""
        ended, wakeup = os.pipe()
        for end in (ended, wakeup):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the clients end their processes
        with selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ)
            selector.register(self._listener, selectors.EVENT_READ)
            had_clients = False
            while self._children or not had_clients:
                for key, _ in selector.select():
                    if key.fileobj == ended:
                        os.read(ended, 4096)
                        self._reap()
                    elif key.fileobj == self._listener:
                        client, _ = self._listener.accept()
                        self._children[client] = set()
                        selector.register(client, selectors.EVENT_READ)
                        had_clients = True
                    elif isinstance(client := key.fileobj, socket.socket) and not self._answer(client):
                        selector.unregister(client)
                        client.close()
        address = Path(self._listener.getsockname())
        for path in (address, address.with_suffix(".lock")):
            path.unlink(missing_ok=True)

    def _answer(self, client: socket.socket) -> bool:
        """Fork a child for the next request. Return False if the client is gone."""
        order, streams, _, _ = socket.recv_fds(client, LONGEST_ORDER, 3)
        if not order:
            for pid in self._children.pop(client):
                os.kill(pid, signal.SIGKILL)
            return False
        pid = fork(order, (streams[0], streams[1], streams[2]))
        for stream in streams:
            os.close(stream)
        self._children[client].add(pid)
        client.send(f"started {pid}".encode())
        return True

    def _reap(self) -> None:
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for client, running in self._children.items():
                if pid in running:
                    running.discard(pid)
                    told = f"ended {pid} {os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime}"
                    with suppress(BrokenPipeError):
                        client.send(told.encode())


if __name__ == "__main__":
    for needed in (*IMPORTED, *COMMANDS, *DOMAINS, *MODELS):
        import_module(needed)
    load_domain(
        "travel"
    )  # with the airports, most of what workers and many other processes compute at startup
    make_clusters_once(Path(os.environ[TRAINED_FOLDER]))
    gc.collect()
    Server(socket.socket(fileno=int(sys.argv[1]))).serve()
