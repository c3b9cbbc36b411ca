"""When to ask again: exponential backoff with full jitter, or what the endpoint asked for.

Only decides; the caller waits. The randomness is passed in, so that a test can fix it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.errors import ModelFailed, ModelTimedOut, ModelUnavailable, RateLimited


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """`attempts` counts the first try. Waits over `longest_wait_s` are not worth waiting for."""

    attempts: int = 3
    base_s: float = 0.5
    cap_s: float = 8.0
    longest_wait_s: float = 20.0


def wait_before_retry(
    policy: RetryPolicy, failed: int, error: ModelUnavailable, random: Callable[[], float]
) -> float | None:
    """Decide how long to wait after a failure, in seconds; None means that a retry is no use.

    Args:
        policy: the bounds.
        failed: how many attempts have failed, at least 1.
        error: how the last one failed.
        random: uniform in [0, 1).
    """
    if failed >= policy.attempts:
        return None
    match error:
        case RateLimited(retry_after_s=float() | int() as asked):
            wait = asked + random() * policy.base_s
            return wait if wait <= policy.longest_wait_s else None
        case RateLimited() | ModelTimedOut() | ModelFailed():
            return random() * min(policy.cap_s, policy.base_s * 2 ** (failed - 1))
        case _:
            return None
