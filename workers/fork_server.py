"""Fork processes that share only code with this one, instantly and with little CPU time.

The server is itself forked before this process opens anything or starts a thread. It exits with this
process; its children do not.
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
"""The main function of a forked process, called with its end of the connection."""


class ForkServer:
    """A fork server. Starts on construction, which must precede the first thread."""

    def __init__(self, main: Main) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            if os.fork() == 0:
                _run(partial(_serve, theirs, main))

    def fork(self) -> socket.socket:
        """Start a process; return our end of its connection, which is closed if the fork failed.

        Raises OSError; BrokenPipeError if the server has exited.
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
        for connection in connections:  # one, or none if there was no room for it
            try:
                if os.fork() == 0:
                    _run(partial(_begin, main, connection))
            except OSError:  # there may be room for the next
                traceback.print_exc()
            os.close(connection)


def _begin(main: Main, connection: int) -> None:
    _stand_apart(keep=connection)
    main(socket.socket(fileno=connection))


def _run(main: Callable[[], None]) -> NoReturn:
    """Exit this process after `main`, whatever happens: it must not continue as its parent."""
    code = 1
    try:
        main()
        code = 0
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        os._exit(code)


def _stand_apart(*, keep: int) -> None:
    """Close open files, and leave the worker's process group."""
    os.setsid()
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    os.closerange(_FIRST_OWN_FD, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
