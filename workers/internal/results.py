"""The workers' result backend: it stores results but waits for none, which Celery would for groups that it
sends.
"""

from typing import Any, Final

from celery import Celery
from celery.backends.redis import RedisBackend, SentinelBackend


class _WaitsForNothing:
    """Tracks no results, because this process never reads any."""

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


class Results(_WaitsForNothing, RedisBackend): ...


class SentinelResults(_WaitsForNothing, SentinelBackend): ...


_BACKENDS: Final = {
    "redis": f"{__name__}:Results",
    "rediss": f"{__name__}:Results",
    "sentinel": f"{__name__}:SentinelResults",
}


def wait_for_no_results(app: Celery) -> None:
    """Make an application store results and count chords without waiting for its own messages."""
    loader: Any = app.loader
    loader.override_backends = _BACKENDS
