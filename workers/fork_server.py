"""A server process that forks isolation processes quickly, because it shares this process's imported modules.

The fork server of `multiprocessing` imports everything again when it starts, which takes seconds.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import socket
import traceback
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import NoReturn

_FIRST_OWN_FD = 3
_RESET = (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_LONGEST_ORDER = 65_536

Main = Callable[..., None]
"""The main function of forked processes. Its last argument is the writing end of a pipe to the starter."""


class ForkServer:
    """A running fork server. Create it before this process opens files or starts threads.

    The server exits with this process, but the processes that it has forked don't.
    """

    def __init__(self, main: Main) -> None:
        self._orders, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            if os.fork() == 0:
                _run(partial(_serve, theirs, main))

    def start(self, *arguments: object) -> Connection:
        """Start a process that calls `main`, and return the reading end of its pipe.

        Raises OSError; specifically BrokenPipeError if the server has exited.
        """
        reader, writer = multiprocessing.Pipe(duplex=False)
        with writer:
            socket.send_fds(self._orders, [pickle.dumps(arguments)], [writer.fileno()])
        return reader


def _serve(orders: socket.socket, main: Main) -> None:
    """Fork a process for each order, until the parent exits."""
    gc.freeze()  # existing objects are never collected, so their memory stays shared
    os.setsid()
    _drop_files(keep=orders.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # exit statuses are not needed
    while True:
        order, pipes, _, _ = socket.recv_fds(orders, _LONGEST_ORDER, 1)
        if not order:
            return
        for pipe in pipes:  # empty if no file descriptor was free
            try:
                if os.fork() == 0:
                    _run(partial(_begin, main, order, pipe))
            except OSError:  # the next fork may succeed
                traceback.print_exc()
            os.close(pipe)


def _begin(main: Main, order: bytes, pipe: int) -> None:
    _drop_files(keep=pipe)
    main(*pickle.loads(order), Connection(pipe, readable=False))  # noqa: S301 - from the parent process


def _run(main: Callable[[], None]) -> NoReturn:
    """Run `main` and exit, even on errors, so that the process never continues its parent's code."""
    code = 1
    try:
        main()
        code = 0
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        os._exit(code)


def _drop_files(*, keep: int) -> None:
    """Reset signal handlers, and close all inherited files except `keep` and the standard streams."""
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    os.closerange(_FIRST_OWN_FD, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
