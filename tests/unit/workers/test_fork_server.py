"""Processes forked from one without open connections (RT-26)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace
from typing import Any, cast

import pytest

from orchestrator.settings import Settings
from orchestrator.types import SessionId
from workers.fork_server import ForkServer
from workers.isolation import Isolation

PROGRAM = textwrap.dedent(
    """
    import os, signal, socket, sys, tempfile
    from workers.fork_server import ForkServer

    kept = tempfile.TemporaryFile()
    file = os.fstat(kept.fileno()).st_ino
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def answer(connection):
        is_open = file in (os.fstat(int(fd)).st_ino for fd in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{fd}"))
        deaf = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        connection.sendall(f"{os.getpid()} {os.getsid(0)} {is_open} {deaf}".encode())
        connection.recv(1)

    server = ForkServer(answer)
    connections = [server.fork() for _ in range(2)]
    print(os.getsid(0), *(connection.recv(100).decode() for connection in connections), flush=True)
    sys.stdin.read()
    """
)


def test_a_fork_has_nothing_of_the_worker_but_its_code() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    assert worker.stdin is not None
    session, *told = worker.stdout.readline().split()
    forks = [told[:4], told[4:]]
    worker.stdin.close()
    worker.wait()
    worker.stdout.close()

    assert len({pid for pid, *_ in forks}) == 2
    for pid, own_session, is_open, is_deaf in forks:
        assert own_session == pid != session
        assert (is_open, is_deaf) == ("False", "False")


FAILING = textwrap.dedent(
    """
    import errno, os, socket, sys
    from workers import fork_server

    really_fork, calls = os.fork, []

    def fork():
        calls.append(None)
        if len(calls) == 2:  # the server's first
            raise BlockingIOError(errno.EAGAIN, "no room for a process")
        return really_fork()

    os.fork = fork
    BREAKS
    try:
        server = fork_server.ForkServer(lambda connection: connection.sendall(b"forked"))
    except TypeError:
        pass  # as Celery goes on after a signal's receiver has failed
    """
)


def run_program(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)


def test_the_server_outlives_forks_that_fail_and_messages_without_a_connection() -> None:
    told = run_program(
        FAILING.replace("BREAKS", "")
        + "print(server.fork().recv(9))\n"
        + "server._orders.send(b'.')\n"
        + "print(server.fork().recv(9), flush=True)\n"
    )

    assert told.stdout.split() == ["b''", "b'forked'"]
    assert "no room for a process" in told.stderr


def test_a_server_that_breaks_ends_and_does_not_go_on_as_the_worker() -> None:
    told = run_program(
        FAILING.replace("BREAKS", "fork_server._stand_apart = None")
        + "print('the worker', flush=True)\n"
        + "server._orders.recv(1)\n"
        + "try:\n    server.fork()\nexcept BrokenPipeError:\n    print('is told', flush=True)\n"
    )

    assert told.stdout.splitlines() == ["the worker", "is told"]


async def test_a_worker_whose_server_has_ended_stops_once_to_be_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ended:
        def fork(self) -> None:
            raise BrokenPipeError

    class Lanes:
        async def offer(self, session_id: SessionId) -> None:
            told.append(session_id)

    sent: list[tuple[int, int]] = []
    told: list[SessionId] = []
    monkeypatch.setattr("workers.isolation.os.kill", lambda *arguments: sent.append(arguments))
    monkeypatch.setattr("workers.isolation.PAUSE_S", 0)
    settings = cast("Settings", SimpleNamespace(turn_deadline_s=1.0))
    isolation = Isolation(settings, cast("ForkServer", Ended()), cast("Any", Lanes()))
    for name in ("one", "other"):
        isolation.start(SessionId(name), 2)
    while len(told) < 2:
        await asyncio.sleep(0)

    assert sent == [(os.getpid(), signal.SIGTERM)]
