import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """Raised on the main thread after Ctrl-C, SIGTERM or a closed terminal, to stop all processes in order."""


_asked = threading.Event()
hurry = threading.Event()
"""Set by a second signal. It shortens all grace periods to one second, even those that have begun."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise StopRequested on the first signal during the block. Later signals set `hurry`."""

    def stop(_number: int, _frame: object) -> None:
        _asked.set()
        for name in _SIGNALS:
            signal.signal(name, lambda *_: hurry.set())
        raise StopRequested

    before = {name: signal.signal(name, stop) for name in _SIGNALS}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
        _asked.clear()
        hurry.clear()


def raise_if_stopped() -> None:
    """Raise StopRequested again if a signal arrived. A finalizer may have swallowed the first exception."""
    if _asked.is_set():
        raise StopRequested
