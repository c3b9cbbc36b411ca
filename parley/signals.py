"""Turns signals of the operator into an orderly stop of this process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequested(BaseException):
    """The operator asked to stop (Ctrl-C, SIGTERM, a closed terminal)."""


_asked = threading.Event()
hurry = threading.Event()
"""Set when the operator will not wait: every stop then has one second, also one that is under way."""


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """Raise StopRequested on the first signal; a further one only shortens what the stop waits for."""

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
    """Raise StopRequested again: a signal that came while a finaliser ran left its exception there."""
    if _asked.is_set():
        raise StopRequested
