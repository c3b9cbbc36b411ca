"""Celery workers that begin at once: forked from a parent that has imported everything and opened nothing.

``python -m tests.integration.chaos.forked_workers MODULE FOLDER`` reads names, one a line, and answers each with the
pid of a new worker of that name. It ends, and kills what is left, at the end of its input.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from pathlib import Path

from celery import Celery

THREADS = 8


def work(app: Celery, name: str, log: Path) -> None:
    """Become a worker until told to stop; as `celery worker` does."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    code = 0
    try:
        app.worker_main(
            [
                *("worker", "-P", "threads", "-c", str(THREADS), "-Q", "turns,submissions"),
                *("-n", f"{name}@forked", "--without-gossip", "--without-mingle", "-l", "INFO"),
            ]
        )
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    os._exit(code)


def main() -> None:
    app: Celery = import_module(sys.argv[1]).app
    logs = Path(sys.argv[2])
    started: list[int] = []
    for line in sys.stdin:
        name = line.strip()
        pid = os.fork()
        if pid == 0:
            work(app, name, logs / f"{name}.log")
        started.append(pid)
        print(pid, flush=True)
    for pid in started:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    # Nobody asks how the children ended; their logs tell.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    main()
