"""Keeps a started stack alive, and turns signals of the operator into an orderly stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from parley.processes import Child, hurry

_LOOK_EVERY_S = 0.2
_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 30.0
_STEADY_AFTER_S = 60.0


class StopRequested(BaseException):
    """The operator asked to stop (Ctrl-C, SIGTERM, a closed terminal)."""


_asked = threading.Event()
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def stop_on_signals() -> Iterator[None]:
    """The first signal raises StopRequested; a further one only shortens what the stop waits for."""

    def stop(_number: int, _frame: object) -> None:
        _asked.set()
        for name in _SIGNALS:
            signal.signal(name, _hurry)
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


def _hurry(_number: int, _frame: object) -> None:
    hurry.set()


@dataclass(slots=True)
class Watch:
    """One child and its restarts."""

    child: Child
    delay_s: float = _FIRST_DELAY_S
    started_at: float = 0.0
    restart_at: float | None = None


def supervise(children: tuple[Child, ...], say: Callable[[str], None]) -> None:
    """Start again what dies, with a growing delay, until StopRequested is raised.

    Call it on the main thread: children die with the thread that started them.
    """
    watches = [Watch(child, started_at=time.monotonic()) for child in children]
    while True:
        raise_if_stopped()
        for watch in watches:
            look(watch, time.monotonic(), say)
        time.sleep(_LOOK_EVERY_S)


def look(watch: Watch, now: float, say: Callable[[str], None]) -> None:
    """One look at one child: notice its end, or start it again when the delay is over."""
    name = watch.child.program.name
    if watch.child.is_running():
        return
    if watch.restart_at is None:
        if now - watch.started_at > _STEADY_AFTER_S:
            watch.delay_s = _FIRST_DELAY_S
        watch.restart_at = now + watch.delay_s
        code = watch.child.exit_code()
        say(f"{name} ended with code {code}; it is started again in {watch.delay_s:.0f} s.")
    elif now >= watch.restart_at:
        watch.child.start()
        watch.started_at, watch.restart_at = now, None
        watch.delay_s = min(watch.delay_s * 2, _LONGEST_DELAY_S)
        say(f"{name} runs again (pid {watch.child.pid}).")
