"""The workers' result backend."""

from celery import Celery
from redis.exceptions import ReadOnlyError

from workers.messages.results import use_result_backend


def test_refused_writes_are_retried() -> None:
    app = Celery(backend="redis://localhost", set_as_current=False)
    use_result_backend(app)
    assert app.backend.exception_safe_to_retry(ReadOnlyError("You can't write against a read only replica."))
