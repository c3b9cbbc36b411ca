"""Start Python programs as forks of this process, which has already imported their modules.

Forking is much faster than starting an interpreter, and the forks share the memory of the imported modules.
"""

from __future__ import annotations

import ctypes
import gc
import os
import runpy
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_FIRST_OWN_FD: Final = 3
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


class ForkedProcess(psutil.Process):
    def poll(self) -> int | None:
        """Return the exit code and reap the process, or return None while the process is running."""
        try:
            return int(self.wait(0) or 0)
        except psutil.TimeoutExpired:
            return None


def can_fork() -> bool:
    """Return True on Linux if there are no other threads. Another thread could hold a lock that the fork needs."""
    return _LIBC is not None and threading.active_count() == 1


def fork_program(
    arguments: Sequence[str],
    *,
    name: str,
    environment: Mapping[str, str],
    streams: tuple[int, int, int],
    dies_by: signal.Signals,
    folder: Path | None = None,
    umask: int = -1,
) -> ForkedProcess:
    """Fork a process that runs ``python ARGUMENTS`` in a new session.

    `arguments`: ``-m``, a module name and the module's arguments. `name`: process name in ``top``; ``ps``
    shows this process's arguments. `streams`: descriptors of stdin, stdout and stderr; all others are closed.
    `dies_by`: signal that the kernel sends to the fork when this process exits. `folder`: working directory.
    Default: the current one. `umask`: file mode mask, or -1 to inherit.
    """
    parent, here = os.getpid(), folder or Path.cwd()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return ForkedProcess(pid)
    code = 1
    try:
        die_with(parent, dies_by)
        if _LIBC is not None:
            _LIBC.prctl(_PR_SET_NAME, name.encode())
        if umask >= 0:
            os.umask(umask)
        _stand_apart(streams)
        _settle(arguments, environment, here)
        code = _run(arguments[1])
    finally:
        # The child must never return into the parent's code or run its exit handlers.
        os._exit(code)


def die_with(parent: int, dies_by: signal.Signals) -> None:
    """Ask the kernel to send `dies_by` when the parent exits (Linux only). Exit if `parent` has already exited."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(dies_by))
        if os.getppid() != parent:
            os._exit(1)


def _stand_apart(streams: tuple[int, int, int]) -> None:
    """Leave the parent's session, drop its signal handlers and open files, and redirect the standard streams."""
    gc.freeze()  # existing objects are never collected, so their memory stays shared
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(_FIRST_OWN_FD, os.sysconf("SC_OPEN_MAX"))


def _settle(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
    """Set the working directory, environment, arguments and streams that a new interpreter would have."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None  # determined again in the new environment
    sys.argv = list(arguments[1:])
    sys.path[:0] = [str(folder), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.excepthook = sys.__excepthook__
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    gc.enable()


def _run(module: str) -> int:
    """Run the module and wait for its threads. Return the exit code."""
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
    threading._shutdown()  # noqa: SLF001 # pyright: ignore[reportAttributeAccessIssue]
    sys.stdout.flush()
    return code
