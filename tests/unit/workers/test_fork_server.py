"""Processes forked by a server without the worker's open files (RT-26)."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = textwrap.dedent(
    """
    import os, signal, sys, tempfile
    from workers.fork_server import ForkServer

    kept = tempfile.TemporaryFile()
    file = os.fstat(kept.fileno()).st_ino
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def answer(name, pipe):
        is_open = file in (os.fstat(int(fd)).st_ino for fd in os.listdir("/dev/fd") if os.path.exists(f"/dev/fd/{fd}"))
        deaf = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        pipe.send((name, os.getpid(), is_open, deaf))

    server = ForkServer(answer)
    told = [pipe.recv() for pipe in (server.start("one"), server.start("other"))]
    (first, one, *shared), (second, other, *also_shared) = told
    assert (first, second) == ("one", "other")
    assert len({one, other, os.getpid()}) == 3
    assert shared == also_shared == [False, False]
    """
)

FAILING = textwrap.dedent(
    """
    import errno, os
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
        server = fork_server.ForkServer(lambda pipe: pipe.send("forked"))
    except TypeError:
        pass  # as Celery goes on after a signal's receiver has failed
    """
)


def run_program(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)


def test_a_fork_has_nothing_of_the_worker_but_its_code() -> None:
    told = run_program(PROGRAM)

    assert (told.returncode, told.stderr) == (0, "")


def test_the_server_outlives_forks_that_fail() -> None:
    told = run_program(
        FAILING.replace("BREAKS", "")
        + "try:\n    server.start().recv()\nexcept EOFError:\n    print('nothing')\n"
        + "print(server.start().recv(), flush=True)\n"
    )

    assert told.stdout.split() == ["nothing", "forked"]
    assert "no room for a process" in told.stderr


def test_a_server_that_breaks_ends_and_does_not_go_on_as_the_worker() -> None:
    told = run_program(
        FAILING.replace("BREAKS", "fork_server._drop_files = None")
        + "print('the worker', flush=True)\n"
        + "server._orders.recv(1)\n"
        + "try:\n    server.start()\nexcept BrokenPipeError:\n    print('is told', flush=True)\n"
    )

    assert told.stdout.splitlines() == ["the worker", "is told"]
