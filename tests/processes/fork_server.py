"""A process that has imported what workers and gateways need, and forks others when told to on its input.

Orders come one JSON object a line: `arguments` of the interpreter (``-m module …``), `folder`, `environment`
and `log`; each is answered with ``started PID``. When a child has ended it says ``ended PID CODE``. At the end of
its input it kills what is left. Nothing is opened and no thread is started here, so that a child is what a new
process would be, without the seconds of processor time that importing takes.
"""

from __future__ import annotations

import ctypes
import gc
import os
import runpy
import selectors
import signal
import sys
import time
from importlib import import_module
from typing import Any, NoReturn

import orjson

NEEDED = (
    "celery.__main__",
    "celery.apps.worker",
    "celery.backends.redis",
    "celery.bin.celery",
    "celery.concurrency.thread",
    "celery.worker.autoscale",
    "celery.worker.consumer",
    "gateway.app",
    "kombu.transport.redis",
    "orchestrator.agent.build",
    "orchestrator.bootstrap",
    "sqlalchemy.dialects.postgresql.psycopg",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
    "workers.app",
)


END_WITH_PARENT = 1
"""PR_SET_PDEATHSIG: the kernel ends a child whose server was killed and could not do so."""
_LIBC = ctypes.CDLL(None, use_errno=True)


def fork(order: dict[str, Any]) -> int:
    """Start a child that does as the order says."""
    order["server"] = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(order)
    return pid


def _become(order: dict[str, Any]) -> NoReturn:
    """Be the interpreter that was asked for, as far as the program can tell."""
    if _LIBC.prctl(END_WITH_PARENT, signal.SIGKILL) != 0 or os.getppid() != order["server"]:
        os._exit(1)  # the server was killed meanwhile
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    os.setsid()
    output = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    _, module, *rest = order["arguments"]
    sys.argv = [module, *rest]
    sys.path[:0] = [path for path in (order["folder"], os.environ.get("PYTHONPATH")) if path]
    gc.enable()
    code = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - as the interpreter would
        sys.excepthook(*sys.exc_info())  # pyright: ignore[reportArgumentType]
        code = 1
    _finish()
    os._exit(code)


def _finish() -> None:
    """Do what the interpreter does at its end, in its order."""
    import atexit  # noqa: PLC0415
    import threading  # noqa: PLC0415

    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()


def _reap(running: set[int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        running.discard(pid)
        print("ended", pid, os.waitstatus_to_exitcode(status), flush=True)


def serve() -> None:
    """Take orders until there are no more."""
    running: set[int] = set()
    ended, wakeup = os.pipe()
    for end in (ended, wakeup):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wakeup)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who asked for the processes ends them
    with selectors.DefaultSelector() as selector, open(0, "rb", buffering=0, closefd=False) as orders:
        selector.register(ended, selectors.EVENT_READ)
        selector.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == ended:
                    os.read(ended, 4096)
                    _reap(running)
                    continue
                line = orders.readline()
                if not line:
                    for pid in running:
                        os.kill(pid, signal.SIGKILL)
                    return
                pid = fork(orjson.loads(line))
                running.add(pid)
                print("started", pid, flush=True)


if __name__ == "__main__":
    for needed in NEEDED:
        import_module(needed)
    gc.collect()
    gc.freeze()
    serve()
