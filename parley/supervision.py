"""Restart child processes that exit, with growing delays between restarts."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from parley.processes import Child
from parley.signals import raise_if_stopped

_CHECK_EVERY_S = 0.5
_FIRST_DELAY_S = 1.0
_LONGEST_DELAY_S = 30.0
_STEADY_AFTER_S = 60.0


@dataclass(slots=True)
class Supervised:
    """A child and its restart state. `restart_at`: monotonic time of the next restart, or None if none is due."""

    child: Child
    delay_s: float = _FIRST_DELAY_S
    started_at: float = 0.0
    restart_at: float | None = None

    def check(self, now: float, say: Callable[[str], None]) -> None:
        """If the child has exited, schedule a restart. When the delay is over, restart the child."""
        name = self.child.program.name
        if self.child.is_running():
            return
        if self.restart_at is None:
            if now - self.started_at > _STEADY_AFTER_S:
                self.delay_s = _FIRST_DELAY_S
            self.restart_at = now + self.delay_s
            code = self.child.exit_code()
            say(f"{name} exited with code {code}; restarting in {self.delay_s:.0f} s.")
        elif now >= self.restart_at:
            self.child.start()
            self.started_at, self.restart_at = now, None
            self.delay_s = min(self.delay_s * 2, _LONGEST_DELAY_S)
            say(f"{name} restarted (pid {self.child.pid}).")


def supervise(
    children: Iterable[Child], say: Callable[[str], None], until: Callable[[], bool] = lambda: False
) -> None:
    """Restart children that exit, until `until` returns True or StopRequested is raised.

    Call this function on the main thread, because children die with the thread that started them.
    """
    supervised = [Supervised(child, started_at=time.monotonic()) for child in children]
    while not until():
        raise_if_stopped()
        for one in supervised:
            one.check(time.monotonic(), say)
        time.sleep(_CHECK_EVERY_S)
