# `benchmarks.peers` installs the dependencies in a separate environment.
"""The DBOS candidate: a single-step workflow per turn, in a queue partitioned by session.

Running this module starts a worker.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import orjson
import psycopg_pool
import redis
from dbos import DBOS, DBOSClient, DBOSConfig

from benchmarks.mailbox import BEGIN, DONE, LOAD, SAVE, TABLES, keys
from benchmarks.work import FIRST, advance, made_once, read_concurrency, read_model_s

DATABASE_URL = os.environ["DATABASE_URL"]
QUEUE = "turns"
SLOTS, WAIT_S = read_concurrency(16), read_model_s()


def _by_socket(url: str) -> str:
    """Return the database URL with the socket's folder as a query parameter, as SQLAlchemy expects."""
    start, _, rest = url.rpartition("@")
    place, _, name = rest.partition("/")
    host, _, port = place.rpartition(":")
    return f"{start}@/{name}?host={host}&port={port}"


@made_once
def _pool() -> psycopg_pool.ConnectionPool[Any]:
    options = {"autocommit": True, "prepare_threshold": 0}
    return psycopg_pool.ConnectionPool(DATABASE_URL, open=True, max_size=16, kwargs=options)


@made_once
def _redis() -> Any:
    return redis.Redis.from_url(os.environ["REDIS_URL"], max_connections=2 * SLOTS)


@DBOS.step(name="save")
def save(session: str, text: str) -> str:
    time.sleep(WAIT_S)
    with _pool().connection() as connection:
        version, body = connection.execute(LOAD, (session,)).fetchone()
        state = orjson.loads(body)
        reply = advance(state, text)
        written = {"state": orjson.dumps(state).decode(), "session": session, "version": version}
        connection.execute(SAVE, {**written, "text": text, "reply": reply})
    return reply


@DBOS.workflow(name="turn")
def take_turn(session: str, text: str) -> str:
    reply = save(session, text)
    told = _redis().pipeline(transaction=False)
    told.lpush(keys(session)[2], reply).incr(DONE).execute()
    return reply


class Client:
    def __init__(self) -> None:
        self._client = DBOSClient(system_database_url=_by_socket(DATABASE_URL))

    async def prepare(self, sessions: list[str]) -> None:
        with _pool().connection() as connection, connection.cursor() as cursor:
            cursor.executemany(BEGIN, [(session, FIRST.decode()) for session in sessions])

    async def submit(self, _: Any, session: str, text: str) -> None:
        order: Any = {
            "workflow_name": "turn",
            "queue_name": QUEUE,
            "queue_partition_key": session,
            "app_version": "bench",
        }
        await self._client.enqueue_async(order, session, text)


async def open_client() -> Client:
    with _pool().connection() as connection:
        for table in TABLES:
            connection.execute(table)
    return Client()


def main() -> None:
    config = DBOSConfig(
        name="peer",
        system_database_url=_by_socket(DATABASE_URL),
        application_version="bench",
        max_executor_threads=2 * SLOTS,
    )
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(QUEUE, partition_concurrency=1, worker_concurrency=SLOTS, polling_interval_sec=0.05)
    print("worker ready.", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
