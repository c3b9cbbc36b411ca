"""The yardstick: a hand-written Celery task per turn, the state in PostgreSQL through plain psycopg.

No lease, no journal, no takeover: what a careful engineer writes in an afternoon.
"""

import logging
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import orjson
import psycopg
import redis
from celery import Celery, signals

from benchmarks.mailbox import FINISH, LOAD, QUEUE, SAVE, TASK, keys
from orchestrator.adapters.redis.address import for_celery

DATABASE_URL = os.environ["DATABASE_URL"]
REDIS_URL = os.environ["REDIS_URL"]


def make_app(take_turn: Callable[[str, str], str]) -> Celery:
    """A Celery application whose task answers a session's next turn by `take_turn`."""
    app = Celery("by_hand", broker=for_celery(REDIS_URL))
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        task_default_queue=QUEUE,
        broker_transport_options={"socket_timeout": 60},
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
    """Two lines of log for every turn are no part of the work."""
    for name in ("celery.app.trace", "celery.worker.strategy"):
        logging.getLogger(name).setLevel(logging.WARNING)


@cache
def _mailbox() -> tuple[Any, Any]:
    store = redis.Redis.from_url(REDIS_URL, socket_timeout=60)
    return store, store.register_script(FINISH)


@cache
def _database() -> psycopg.Connection[Any]:
    return psycopg.connect(DATABASE_URL, autocommit=True, prepare_threshold=0)


def _take_turn(session: str, text: str) -> str:
    from benchmarks.work import advance  # noqa: PLC0415 - imported once, in the child

    row: Any = _database().execute(LOAD, (session,)).fetchone()
    version, state_text = row
    state = orjson.loads(state_text)
    reply = advance(state, text)
    written = {"state": orjson.dumps(state).decode(), "session": session, "version": version}
    _database().execute(SAVE, {**written, "text": text, "reply": reply})
    return reply


app = make_app(_take_turn)
