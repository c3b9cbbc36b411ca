"""Connections that are at hand between the statements of the hot path, with what those have prepared."""

import asyncio
import select
import time
from collections.abc import Mapping
from typing import Any, LiteralString, TypeAlias

import psycopg
import psycopg_pool
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from orchestrator.adapters.postgres.statements import Statement, parse
from orchestrator.errors import Unavailable

Connection = psycopg.AsyncConnection[TupleRow]
Query: TypeAlias = Statement | LiteralString

_AT_HAND_FOR_S = 600.0
"""So long, a connection is kept at hand; then the pool renews it, or closes what is one too many."""


class HotConnection:
    """A connection with a cursor for each statement that it has carried out: a new one costs half a small statement."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._since = time.monotonic()
        self._cursors: dict[str, psycopg.AsyncCursor[TupleRow]] = {}
        self._poller = select.poll()
        self._poller.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)

    def is_fresh(self) -> bool:
        """Whether it may be kept at hand: it is whole, in no transaction, and not old."""
        idle = self.connection.pgconn.transaction_status == TransactionStatus.IDLE
        return idle and time.monotonic() - self._since < _AT_HAND_FOR_S

    async def check(self) -> None:
        """Look whether the connection is alive.

        A server that went away leaves something to read (the end of the stream): only then is a round
        trip spent on asking.
        """
        if self._poller.poll(0):
            await self.connection.execute("SELECT 1")

    async def fetch_one(self, query: Query, arguments: Mapping[str, Any]) -> TupleRow | None:
        """Run a statement; its first row."""
        return await (await self.execute(query, arguments)).fetchone()

    async def fetch_all(self, query: Query, arguments: Mapping[str, Any]) -> list[TupleRow]:
        """Run a statement; all its rows."""
        return await (await self.execute(query, arguments)).fetchall()

    async def execute(self, query: Query, arguments: Mapping[str, Any]) -> psycopg.AsyncCursor[TupleRow]:
        """Run a statement. Text that is in no file is numbered when it is first seen."""
        found = query if isinstance(query, Statement) else parse(query)
        cursor = self._cursors.get(found.text)
        if cursor is None:
            cursor = self._cursors[found.text] = self.connection.cursor()
        return await cursor.execute(found.text, found.ordered(arguments))


class HotConnections:
    """Connections at hand between statements; the pool beneath makes them, and renews what is broken or old.

    A way through the pool costs more CPU than a small statement. Whoever finds all in use waits in line.
    """

    def __init__(
        self, pool: psycopg_pool.AsyncConnectionPool[Connection], size: int, timeout_s: float
    ) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._room = asyncio.Semaphore(size)
        self._idle: list[HotConnection] = []

    async def borrow(self) -> HotConnection:
        """A connection, which goes into `give_back`, whatever happens.

        Raises Unavailable when none comes free in time, and psycopg's errors.
        """
        if self._room.locked():
            try:
                async with asyncio.timeout(self._timeout_s):
                    await self._room.acquire()
            except TimeoutError as error:
                raise Unavailable("Every database connection is in use; try again later.") from error
        else:
            await self._room.acquire()
        try:
            return await self._take()
        except BaseException:
            self._room.release()
            raise

    async def give_back(self, hot: HotConnection) -> None:
        """Keep it for the next one, unless the pool has to look at it."""
        try:
            if hot.is_fresh() and not self._pool.closed:
                self._idle.append(hot)
            else:
                await self._pool.putconn(hot.connection)
        finally:
            self._room.release()

    async def close(self) -> None:
        """Give everything back to the pool."""
        while self._idle:
            await self._pool.putconn(self._idle.pop().connection)

    async def _take(self) -> HotConnection:
        while True:
            hot = self._idle.pop() if self._idle else HotConnection(await self._pool.getconn())
            try:
                await hot.check()
            except psycopg.OperationalError:
                await self._pool.putconn(hot.connection)
            except BaseException:
                await self._pool.putconn(hot.connection)
                raise
            else:
                return hot
