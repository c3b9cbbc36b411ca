"""The yardstick: a hand-written Celery task per turn, the state in PostgreSQL through plain psycopg.

A session's turns wait in a Redis list; a flag says that a task is on its way, which keeps the order.
No lease, no journal, no takeover: what a careful engineer writes in an afternoon.
"""

from __future__ import annotations

import logging
import os
from typing import Any

import orjson
import psycopg
import redis
from celery import Celery, signals

from orchestrator.adapters.redis.address import for_celery

DATABASE_URL = os.environ["DATABASE_URL"]
REDIS_URL = os.environ["REDIS_URL"]
QUEUE = "by_hand"
TABLES = """
    CREATE TABLE by_hand_sessions (session_id text PRIMARY KEY, version bigint NOT NULL, state text NOT NULL);
    CREATE TABLE by_hand_turns (session_id text, version bigint, text text, reply text,
                                PRIMARY KEY (session_id, version))"""

SUBMIT = """
    redis.call('RPUSH', KEYS[1], ARGV[1])
    return redis.call('SET', KEYS[2], '1', 'NX') and 1 or 0"""
FINISH = """
    redis.call('LPOP', KEYS[1])
    redis.call('LPUSH', KEYS[3], ARGV[1])
    redis.call('INCR', KEYS[4])
    if redis.call('LLEN', KEYS[1]) > 0 then return 1 end
    redis.call('DEL', KEYS[2])
    return 0"""
LOAD = "SELECT version, state FROM by_hand_sessions WHERE session_id = %s"
SAVE = """
    WITH saved AS (
        UPDATE by_hand_sessions SET state = %(state)s, version = version + 1
        WHERE session_id = %(session)s AND version = %(version)s
        RETURNING version)
    INSERT INTO by_hand_turns SELECT %(session)s, version, %(text)s, %(reply)s FROM saved"""

app = Celery("by_hand", broker=for_celery(REDIS_URL))
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    task_default_queue=QUEUE,
    broker_transport_options={"socket_timeout": 5},
)
_connections: dict[str, Any] = {}


@signals.after_setup_logger.connect
def _log_no_task(**_: Any) -> None:
    """Two lines of log for every turn are no part of the work."""
    for name in ("celery.app.trace", "celery.worker.strategy"):
        logging.getLogger(name).setLevel(logging.WARNING)


def keys(session: str) -> list[str]:
    """Mailbox, flag, replies, counter."""
    return [f"hand:box:{session}", f"hand:flag:{session}", f"hand:reply:{session}", "hand:done"]


@app.task(name="by_hand.run")
def run(session: str) -> None:
    from benchmarks.work import advance  # noqa: PLC0415 - imported once, in the child

    database, store = _connect()
    text = store.lindex(keys(session)[0], 0)
    if text is None:
        return
    version, state_text = database.execute(LOAD, (session,)).fetchone()
    state = orjson.loads(state_text)
    reply = advance(state, text.decode())
    database.execute(
        SAVE,
        {
            "state": orjson.dumps(state).decode(),
            "session": session,
            "version": version,
            "text": text.decode(),
            "reply": reply,
        },
    )
    if _connections["finish"](keys=keys(session), args=[reply]):
        run.delay(session)


def _connect() -> tuple[psycopg.Connection[Any], redis.Redis]:
    if not _connections:
        _connections["database"] = psycopg.connect(DATABASE_URL, autocommit=True, prepare_threshold=0)
        _connections["redis"] = redis.Redis.from_url(REDIS_URL, socket_timeout=5)
        _connections["finish"] = _connections["redis"].register_script(FINISH)
    return _connections["database"], _connections["redis"]
