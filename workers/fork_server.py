"""A fork server, which starts processes fast and with little CPU time.

The server is forked before this process opens files or starts threads, so its children only share code.
It exits with this process, but its children don't.
"""

import gc
import os
import signal
import socket
import traceback
from collections.abc import Callable
from functools import partial
from typing import NoReturn

_FIRST_OWN_FD = 3
_RESET = (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)

Main = Callable[[socket.socket], None]
"""Main function of a forked process, called with the process's end of the connection."""


class ForkServer:
    """A running fork server. Create it before starting any thread."""

    def __init__(self, main: Main) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            if os.fork() == 0:
                _run(partial(_serve, theirs, main))

    def fork(self) -> socket.socket:
        """Start a process and return our end of its connection, which is closed if the fork failed.

        Raises OSError; specifically BrokenPipeError if the server has exited.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._orders, [b"."], [theirs.fileno()])
        return ours


def _serve(orders: socket.socket, main: Main) -> None:
    """Fork a process for each received connection, until the parent exits."""
    gc.freeze()  # exclude existing objects from collection, so that their memory stays shared
    _stand_apart(keep=orders.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # exit statuses are not needed
    while True:
        order, connections, _, _ = socket.recv_fds(orders, 1, 1)
        if not order:
            return
        for connection in connections:  # empty if no file descriptor was free
            try:
                if os.fork() == 0:
                    _run(partial(_begin, main, connection))
            except OSError:  # the next fork may succeed
                traceback.print_exc()
            os.close(connection)


def _begin(main: Main, connection: int) -> None:
    _stand_apart(keep=connection)
    main(socket.socket(fileno=connection))


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


def _stand_apart(*, keep: int) -> None:
    """Leave the worker's process group, reset signal handlers, and close all files except `keep`."""
    os.setsid()
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    os.closerange(_FIRST_OWN_FD, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
