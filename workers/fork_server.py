"""Fork processes that share nothing with this one but its code, at once and for next to no processor time.

The server is itself forked while this process has opened nothing and started no thread. It ends with this process;
those it has forked do not.
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
"""Runs in a forked process until it ends; takes its end of the connection."""


class ForkServer:
    """Starts on construction, which must come before the first thread."""

    def __init__(self, main: Main) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            if os.fork() == 0:
                _run(partial(_serve, theirs, main))

    def fork(self) -> socket.socket:
        """Start a process; gives our end of the connection to it, which is closed when none could be started.

        Raises OSError; BrokenPipeError when the server has ended.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._orders, [b"."], [theirs.fileno()])
        return ours


def _serve(orders: socket.socket, main: Main) -> None:
    """Fork a process for each connection that is sent, until whoever sends them has ended."""
    gc.freeze()  # what is here now is never looked through, and its memory stays shared
    _stand_apart(keep=orders.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while True:
        order, connections, _, _ = socket.recv_fds(orders, 1, 1)
        if not order:
            return
        for connection in connections:  # one, or none when there was no room for it
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
    """End this process after it, whatever happens: it must not go on as the one it was forked from."""
    code = 1
    try:
        main()
        code = 0
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        os._exit(code)


def _stand_apart(*, keep: int) -> None:
    """Close what is open, and be out of reach of signals that are meant for the worker and its kin."""
    os.setsid()
    for number in _RESET:
        signal.signal(number, signal.SIG_DFL)
    os.closerange(_FIRST_OWN_FD, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
