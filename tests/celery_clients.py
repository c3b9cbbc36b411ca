"""Celery clients for tests, which close their connections to the result store. Celery's `close()` does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from celery import Celery
from celery.backends.redis import RedisBackend
from celery.result import AsyncResult

from orchestrator.adapters.redis.address import for_celery
from orchestrator.ports.tasks import SUBMIT_TURN


def celery_client(broker_url: str, results_url: str | None = None) -> AbstractContextManager[Celery]:
    results = for_celery(results_url or broker_url)
    return connected(Celery(set_as_current=False, broker=for_celery(broker_url), backend=results))


def submit_turn(
    app: Celery, session: str, text: str, *, ignore_result: bool = False, **arguments: Any
) -> AsyncResult[dict[str, Any]]:
    """Submit a turn. `arguments`: of the task, by default for the counting agent."""
    told = {"session_id": session, "text": text, "domain": "counting", **arguments}
    return app.send_task(SUBMIT_TURN, kwargs=told, queue="submissions", ignore_result=ignore_result)


@contextmanager
def connected(app: Celery) -> Iterator[Celery]:
    try:
        yield app
    finally:
        close_results(app)
        app.close()


def close_results(app: Celery) -> None:
    """Close the connections of the result backend. kombu keeps broker connections for later clients."""
    if isinstance(app.backend, RedisBackend):
        consumer: Any = app.backend.result_consumer
        consumer.subscribed_to.clear()  # ignore unread results
        consumer.stop()
        consumer._pubsub = None  # a later result would open a connection to unsubscribe
        app.backend.client.close()
        app.backend.client.connection_pool.disconnect()
