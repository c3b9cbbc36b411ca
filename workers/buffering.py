"""Retry senders' tasks while a store is unavailable, instead of rejecting them (RT-30, RT-34).

Waiting messages stay unacknowledged and occupy threads, so further messages stay in the broker. If the worker
stops or a message expires, the message returns to the broker. Celery revokes expired messages on redelivery.
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
    """Return the result of `act`, retrying while a store is unavailable.

    `expires_at`: the message's expiry time, or None if the message doesn't expire. Raises Reject, which
    requeues the message, if the worker stops or the message expires.
    """
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
    """Sleep for `pause_s` seconds. Return False if the worker is stopping or the message has expired."""
    ends_at = time.monotonic() + pause_s
    while (left_s := ends_at - time.monotonic()) > 0:
        if state.should_stop not in {None, False} or state.should_terminate not in {None, False}:
            return False
        time.sleep(min(left_s, _LOOK_EVERY_S))
    return expires_at is None or datetime.now(UTC) < expires_at
