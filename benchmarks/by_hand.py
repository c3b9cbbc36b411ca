"""The baseline: a hand-written Celery task that runs one turn, with the session's state in PostgreSQL.

The baseline has no lease, journal or failover.
"""

import logging
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import orjson
import psycopg
import psycopg_pool
import redis
from celery import Celery, signals

from benchmarks.mailbox import FINISH, LOAD, PROCESSES, QUEUE, SAVE, TASK, keys
from benchmarks.work import made_once, read_concurrency, read_model_s
from orchestrator.adapters.redis.address import for_celery

DATABASE_URL = os.environ["DATABASE_URL"]
REDIS_URL = os.environ["REDIS_URL"]
THREADS = read_concurrency(PROCESSES) > PROCESSES
WAIT_S = read_model_s()


def make_app(take_turn: Callable[[str, str], str]) -> Celery:
    """Return a Celery application whose task runs a session's next turn.

    `take_turn`: receives the session ID and the message, and returns the reply.
    """
    app = Celery("by_hand", broker=for_celery(REDIS_URL))
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        task_default_queue=QUEUE,
        # Kombu's default is ten connections. With more than ten concurrent turns, acknowledgments would fail.
        broker_transport_options={"socket_timeout": 60, "max_connections": 1000},
    )

    @app.task(name=TASK, shared=False)
    def run(session: str) -> None:
        store, finish = _mailbox()
        text = store.lindex(keys(session)[0], 0)
        if text is not None and finish(keys=keys(session), args=[take_turn(session, text.decode())]):
            app.send_task(TASK, args=[session])

    return app


@signals.after_setup_logger.connect
def _log_no_task(**_: Any) -> None:
    """Silence the two log lines that Celery writes for each task."""
    for name in ("celery.app.trace", "celery.worker.strategy"):
        logging.getLogger(name).setLevel(logging.WARNING)


@made_once
def _mailbox() -> tuple[Any, Any]:
    store = redis.Redis.from_url(REDIS_URL, socket_timeout=60)
    return store, store.register_script(FINISH)


@made_once
def _database() -> psycopg.Connection[Any]:
    return psycopg.connect(DATABASE_URL, autocommit=True, prepare_threshold=0)


@made_once
def _pool() -> psycopg_pool.ConnectionPool[Any]:
    options = {"autocommit": True, "prepare_threshold": 0}
    return psycopg_pool.ConnectionPool(DATABASE_URL, open=True, max_size=16, timeout=60, kwargs=options)


def _connection() -> AbstractContextManager[psycopg.Connection[Any]]:
    return _pool().connection() if THREADS else nullcontext(_database())


def _take_turn(session: str, text: str) -> str:
    from benchmarks.work import advance  # noqa: PLC0415 - imported in the child process

    with _connection() as connection:
        row: Any = connection.execute(LOAD, (session,)).fetchone()
    version, state_text = row
    state = orjson.loads(state_text)
    if WAIT_S:
        time.sleep(WAIT_S)
    reply = advance(state, text)
    written = {"state": orjson.dumps(state).decode(), "session": session, "version": version}
    with _connection() as connection:
        connection.execute(SAVE, {**written, "text": text, "reply": reply})
    return reply


app = make_app(_take_turn)
