# `benchmarks.peers` installs the dependencies in a separate environment.
"""The procrastinate candidate: a job for each turn and a lock for each session. Running this module starts a worker."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import orjson
import procrastinate
import psycopg_pool
import redis.asyncio

from benchmarks.mailbox import BEGIN, DONE, LOAD, SAVE, TABLES, keys
from benchmarks.work import FIRST, advance, read_concurrency, read_model_s

WAIT_S = read_model_s()

app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=os.environ["DATABASE_URL"], max_size=16)
)
_pool = psycopg_pool.AsyncConnectionPool(
    os.environ["DATABASE_URL"], open=False, max_size=16, kwargs={"autocommit": True, "prepare_threshold": 0}
)
_redis = redis.asyncio.from_url(os.environ["REDIS_URL"])


@app.task(name="turn", queue="turns")
async def take_turn(session: str, text: str) -> None:
    await asyncio.sleep(WAIT_S)
    async with _pool.connection() as connection:
        row: Any = await (await connection.execute(LOAD, (session,))).fetchone()
        state = orjson.loads(row[1])
        reply = advance(state, text)
        written = {"state": orjson.dumps(state).decode(), "session": session, "version": row[0]}
        await connection.execute(SAVE, {**written, "text": text, "reply": reply})
    async with _redis.pipeline(transaction=False) as told:
        await told.lpush(keys(session)[2], reply).incr(DONE).execute()


class Client:
    async def prepare(self, sessions: list[str]) -> None:
        async with _pool.connection() as connection, connection.cursor() as cursor:
            await cursor.executemany(BEGIN, [(session, FIRST.decode()) for session in sessions])

    async def submit(self, _: Any, session: str, text: str) -> None:
        await take_turn.configure(lock=session).defer_async(session=session, text=text)


async def open_client() -> Client:
    await _pool.open()
    await app.open_async()
    async with _pool.connection() as connection:
        for table in TABLES:
            await connection.execute(table)
    await app.schema_manager.apply_schema_async()
    return Client()


async def main() -> None:
    await _pool.open()
    async with app.open_async():
        print("worker ready.", flush=True)
        await app.run_worker_async(
            queues=["turns"], concurrency=read_concurrency(16), install_signal_handlers=True
        )


if __name__ == "__main__":
    asyncio.run(main())
