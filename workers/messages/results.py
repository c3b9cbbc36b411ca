"""A result store that waits while Redis rejects writes, as if it were unavailable (RT-34)."""

from typing import Any, Final

from celery.backends.redis import RedisBackend, SentinelBackend
from redis.exceptions import RedisError

MOST_RETRIES: Final = 600
LONGEST_PAUSE_MS: Final = 1000
SETTINGS: Final = {
    "result_backend_always_retry": True,
    "result_backend_max_retries": MOST_RETRIES,
    "result_backend_max_sleep_between_retries_ms": LONGEST_PAUSE_MS,
}
"""A sender's task is acknowledged after its result is stored, so its message waits too."""


class _WaitingForWrites:
    def exception_safe_to_retry(self, exc: Exception) -> bool:
        """Return True: every operation can be repeated safely."""
        return isinstance(exc, (RedisError, OSError))


class RedisResults(_WaitingForWrites, RedisBackend):
    """Celery's Redis result store."""


class SentinelResults(_WaitingForWrites, SentinelBackend):
    """The same with sentinels."""


BACKENDS: Final[dict[str, Any]] = {
    "redis": f"{__name__}:RedisResults",
    "rediss": f"{__name__}:RedisResults",
    "sentinel": f"{__name__}:SentinelResults",
}
"""Replacements of Celery's backends, by name."""
