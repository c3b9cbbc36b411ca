"""Whether a worker process is alive: a session-level advisory lock under its number (RT-11).

The lock ends with the connection, so the others see a death at once, not when its leases expire.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import Self

import psycopg

from orchestrator.adapters.postgres.pool import Connection, connection_options, translated
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.types import WorkerId

LOCK_CLASS = 0x5041524C
"""First key of every worker's advisory lock; the second is the worker's number."""

_RECONNECT_FIRST_S = 0.1
_RECONNECT_MAX_S = 2.0

_log = get_logger(__name__)


class WorkerLiveness:
    """Holds this process's lock as long as the context lasts; a broken connection gets a new number.

    The row stays behind: the next sweep of another worker frees what this one still held.
    """

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._worker_id: WorkerId | None = None
        self._connection: Connection | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def worker_id(self) -> WorkerId:
        """The present number. Raises Unavailable while the connection is being made again."""
        if self._worker_id is None:
            raise Unavailable("This worker is connecting to the database again; try again later.")
        return self._worker_id

    async def __aenter__(self) -> Self:
        with translated():
            self._connection = await self._register()
        self._watch = asyncio.create_task(self._keep())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        await self._forget()

    async def _register(self) -> Connection:
        connection: Connection = await psycopg.AsyncConnection.connect(
            self._url, autocommit=True, **connection_options("parley liveness")
        )
        try:
            self._worker_id = await _take_number(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _keep(self) -> None:
        """Watch the connection and register anew, under a new number, when it breaks."""
        while True:
            try:
                if self._connection is None:
                    self._connection = await self._register()
                async for _ in self._connection.notifies():
                    pass
            except psycopg.Error as error:
                _log.warning("The liveness connection broke.", error=error, worker_id=self._worker_id)
                await self._forget()
                await self._wait_for_server()

    async def _wait_for_server(self) -> None:
        delay_s = _RECONNECT_FIRST_S
        while self._connection is None:
            await asyncio.sleep(delay_s)
            try:
                self._connection = await self._register()
            except psycopg.Error:
                delay_s = min(2 * delay_s, _RECONNECT_MAX_S)

    async def _forget(self) -> None:
        self._worker_id = None
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


async def _take_number(connection: Connection) -> WorkerId:
    """A fresh number with its lock held; the row is written after, so that nobody finds it free."""
    cursor = await connection.execute("SELECT nextval('worker_ids')")
    row = await cursor.fetchone()
    assert row is not None
    worker_id = int(row[0])
    await connection.execute("SELECT pg_advisory_lock(%s, %s)", (LOCK_CLASS, worker_id))
    await connection.execute(
        "INSERT INTO workers (worker_id, host, pid) VALUES (%s, %s, %s)",
        (worker_id, socket.gethostname(), os.getpid()),
    )
    return WorkerId(worker_id)
