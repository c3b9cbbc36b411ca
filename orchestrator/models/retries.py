"""Retries of transient model failures, after the delay that the endpoint requests or with full jitter."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import uniform

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from orchestrator.errors import ModelFailed, ModelTimedOut, ModelUnavailable, RateLimited

_PASSING = (RateLimited, ModelTimedOut, ModelFailed)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Retry limits. `attempts`: maximum number of requests to one model, including the first.

    Delays are random. Their upper limit starts at `base_s` seconds and doubles up to `cap_s` seconds.
    If the endpoint requests a delay above `longest_wait_s` seconds, the call is not retried.
    """

    attempts: int = 3
    base_s: float = 0.5
    cap_s: float = 8.0
    longest_wait_s: float = 20.0

    def retrying(
        self,
        sleep: Callable[[float], Awaitable[None]],
        in_time: Callable[[float], bool],
        may_retry: Callable[[], bool],
    ) -> AsyncRetrying:
        """Return an iterator over the attempts to call one model. The last error is raised unchanged.

        Args:
            sleep: waits for a number of seconds.
            in_time: returns True if the deadline permits a delay of this many seconds.
            may_retry: returns True to try again. Called after each failure.
        """
        jitter = wait_random_exponential(multiplier=self.base_s, max=self.cap_s)
        used_up = stop_after_attempt(self.attempts)

        def wait(state: RetryCallState) -> float:
            asked = _asked_wait_s(state)
            return jitter(state) if asked is None else asked + uniform(0, self.base_s)

        def stop(state: RetryCallState) -> bool:
            too_long = _asked_wait_s(state) is not None and state.upcoming_sleep > self.longest_wait_s
            return used_up(state) or too_long or not in_time(state.upcoming_sleep)

        return AsyncRetrying(
            sleep=sleep,
            wait=wait,
            stop=stop,
            retry=retry_if_exception(lambda error: isinstance(error, _PASSING) and may_retry()),
            reraise=True,
        )


def _asked_wait_s(state: RetryCallState) -> float | None:
    error = None if state.outcome is None else state.outcome.exception()
    return error.retry_after_s if isinstance(error, ModelUnavailable) else None
