"""The workers' result backend.

The backend waits while Redis rejects writes (RT-34), and sends chord bodies that killed workers left unsent
(RT-30). The results of sent groups are not tracked, because workers never read results.
"""

import time
from typing import Any, Final

from celery import Celery
from celery.backends.redis import RedisBackend, SentinelBackend
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

MOST_RETRIES: Final = 600
LONGEST_PAUSE_MS: Final = 1000
SETTINGS: Final = {
    "result_backend_always_retry": True,
    "result_backend_max_retries": MOST_RETRIES,
    "result_backend_max_sleep_between_retries_ms": LONGEST_PAUSE_MS,
}
"""Retry settings. A worker acknowledges a sender's message only after storing the task's result."""


class _Backend(RedisBackend):
    def on_task_call(self, producer: Any, task_id: str) -> None:
        del producer, task_id

    def add_pending_result(self, result: Any, weak: bool = False, start_drainer: bool = True) -> Any:
        del weak, start_drainer
        return result

    def add_pending_results(self, results: Any, weak: bool = False) -> Any:
        del weak
        return results

    def remove_pending_result(self, result: Any) -> Any:
        return result

    def exception_safe_to_retry(self, exc: Exception) -> bool:
        """Return True if Redis failed. Repeating an operation is always safe."""
        return isinstance(exc, (RedisError, OSError))

    def on_chord_part_return(
        self, request: Any, state: str, result: Any, propagate: Any = None, **kwargs: Any
    ) -> None:
        """Count a part of a chord, and send the chord's body after the last part.

        A worker claims the body before sending it. If the worker is killed in between, its part is
        redelivered and finds the claim, and Celery would never send the body. Therefore, this method waits
        until the claim expires, or raises OperationalError if the caller retries.
        """
        count = super().on_chord_part_return
        count(request, state, result, propagate, **kwargs)
        while request.chord and (left_s := self._claim_expires_in_s(request.group)) > 0:
            if not self.always_retry:
                raise OperationalError(f"Chord {request.group}: another worker is about to send its body.")
            time.sleep(min(left_s, LONGEST_PAUSE_MS / 1000))
            count(request, state, result, propagate, **kwargs)

    def _claim_expires_in_s(self, group_id: str) -> float:
        """Return the seconds until another worker's claim on an unsent body expires, or 0 if there is no claim."""
        size, claim = (self.get_key_for_group(group_id, member) for member in (".s", ".c"))
        with self.client.pipeline() as pipeline:
            is_unsent, left_ms = pipeline.exists(size).pttl(claim).execute()
        return max(left_ms, 0) / 1000 if is_unsent else 0


class Results(_Backend, RedisBackend): ...


class SentinelResults(_Backend, SentinelBackend): ...


_BACKENDS: Final = {
    "redis": f"{__name__}:Results",
    "rediss": f"{__name__}:Results",
    "sentinel": f"{__name__}:SentinelResults",
}


def use_result_backend(app: Celery) -> None:
    loader: Any = app.loader
    loader.override_backends = _BACKENDS
