"""A buffer for senders' tasks while a store is unavailable, so that nothing is rejected (RT-30, RT-34).

A few messages wait here, unacknowledged; others stay in the broker, because all threads are busy. When the
worker stops or the message expires, it returns to the broker, where Celery checks `expires`.
"""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, TypeVar

from celery.exceptions import Reject
from celery.worker import state

from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 3.0
_LOOK_EVERY_S: Final = 0.2

_log = get_logger(__name__)
_Result = TypeVar("_Result")


def until_available(expires_at: datetime | None, act: Callable[[], _Result]) -> _Result:
    """Retry a call until the stores respond. Raises Reject to return the message to the broker."""
    pause_s, waits = FIRST_PAUSE_S, False
    while True:
        try:
            return act()
        except Unavailable as error:
            if not waits:
                _log.warning("A message waits until the stores respond.", error=error)
            waits = True
            if not _may_wait(pause_s * random.uniform(0.5, 1.0), expires_at):
                raise Reject(error, requeue=True) from None
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _may_wait(pause_s: float, expires_at: datetime | None) -> bool:
    """Pause; return False if the worker stops or the message expires meanwhile."""
    ends_at = time.monotonic() + pause_s
    while (left_s := ends_at - time.monotonic()) > 0:
        if state.should_stop not in {None, False} or state.should_terminate not in {None, False}:
            return False
        time.sleep(min(left_s, _LOOK_EVERY_S))
    return expires_at is None or datetime.now(UTC) < expires_at
