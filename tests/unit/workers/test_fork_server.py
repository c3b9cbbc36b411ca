"""Processes that are forked from one that has opened nothing (RT-26)."""

from __future__ import annotations

import subprocess
import sys
import textwrap

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
