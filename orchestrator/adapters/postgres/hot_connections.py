import asyncio
import select
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, LiteralString, TypeAlias

import psycopg
import psycopg_pool
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.generators import execute
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import TupleRow

from orchestrator.adapters.postgres.statements import Statement, parse
from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger

Connection = psycopg.AsyncConnection[TupleRow]
Query: TypeAlias = Statement | LiteralString

_AT_HAND_FOR_S = 600.0
"""Age at which a connection returns to the pool, in seconds.

The pool then replaces the connection, or closes a surplus connection.
"""
UNUSED_FOR_S = 10.0
"""Seconds that a surplus connection stays unused here, and then in the pool, before the pool closes it."""
MOST_PREPARED = 200
"""Maximum number of prepared statements per connection.

Each combination of text and argument types is a statement.
"""
_STOPPED_WITHIN_S = 5.0
"""Timeout for stopping a statement on the server after its caller is canceled, in seconds."""
_FAILED = ExecStatus.FATAL_ERROR
_IDLE = TransactionStatus.IDLE
_number = count()

_log = get_logger(__name__)


class HotConnection:
    """A connection with its prepared statements, used by one borrower at a time.

    Statements go directly to libpq, because psycopg's cursors cost more CPU time than a small statement.
    psycopg still converts the types. Ad hoc statements use `connection`.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._pooled = connection.prepare_threshold is None
        self._since = self.returned_at = time.monotonic()
        self._server = connection.pgconn
        self._socket = connection.fileno()
        self._types = Transformer(connection)
        self._prepared: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._watched = False
        self._poller = select.poll()
        self._poller.register(self._socket, select.POLLIN | select.POLLHUP | select.POLLERR)

    @property
    def connection(self) -> Connection:
        """Stop watching the socket, because psycopg watches it too, and return the psycopg connection."""
        if self._watched:
            self._loop.remove_reader(self._socket)
            self._watched = False
        return self._connection

    def is_fresh(self) -> bool:
        return self._server.transaction_status == _IDLE and time.monotonic() - self._since < _AT_HAND_FOR_S

    async def check(self) -> None:
        """Raise psycopg's error if the connection is dead.

        A closed connection has data to read: the end of the stream. Without data, no round trip is needed.
        """
        if self._poller.poll(0):
            await self.connection.execute("SELECT 1")

    async def fetch_one(self, query: Query, arguments: Mapping[str, Any]) -> TupleRow | None:
        rows = await self.fetch_all(query, arguments)
        return rows[0] if rows else None

    async def fetch_all(self, query: Query, arguments: Mapping[str, Any]) -> list[TupleRow]:
        """Run a statement and return all rows. Raises psycopg's errors.

        Cancellation stops the statement and closes the connection.
        """
        found = query if isinstance(query, Statement) else parse(query)
        types = self._types
        values = types.dump_sequence(found.ordered(arguments), found.formats)
        kinds, formats = types.types or (), types.formats
        if self._pooled:
            self._server.send_query_params(found.text.encode(), values, kinds, formats)
        else:
            name = self._prepared.get((found.text, kinds))
            if name is None:
                name = await self._prepare(found.text, kinds)
            self._server.send_query_prepared(name, values, formats)
        result = await self._receive()
        types.set_pgresult(result)
        return types.load_rows(0, result.ntuples, tuple)

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[None]:
        await self.fetch_all("BEGIN", {})
        try:
            yield
        except BaseException:
            if self._server.status == ConnStatus.OK:
                await self.fetch_all("ROLLBACK", {})
            raise
        await self.fetch_all("COMMIT", {})

    async def _prepare(self, text: str, kinds: tuple[int, ...]) -> bytes:
        if len(self._prepared) >= MOST_PREPARED:
            await self.connection.execute("DEALLOCATE ALL")
            self._prepared.clear()
        name = f"hot_{next(_number)}".encode()
        self._server.send_prepare(name, text.encode(), kinds)
        await self._receive()
        self._prepared[text, kinds] = name
        return name

    async def _receive(self) -> PGresult:
        server = self._server
        if server.flush():  # the query exceeds the socket buffer
            [result, *_] = await self.connection.wait(execute(server))
        else:
            result = None
            while True:
                while server.is_busy():
                    await self._wait_for_input()
                    server.consume_input()
                following = server.get_result()
                if following is None:
                    break
                result = result or following
            assert result is not None
        if result.status == _FAILED:
            raise error_from_result(result, self._types.encoding)
        return result

    async def _wait_for_input(self) -> None:
        self._waiter = self._loop.create_future()
        if not self._watched:
            self._loop.add_reader(self._socket, self._note_input)
            self._watched = True
        try:
            await self._waiter
        except BaseException:
            await self._give_up()
            raise
        finally:
            self._waiter = None

    def _note_input(self) -> None:
        """Resume the waiting statement. Other input means that the server closes the connection; see `check`."""
        if self._waiter is None:
            if self._poller.poll(0):
                self._loop.remove_reader(self._socket)
                self._watched = False
        elif not self._waiter.done():
            self._waiter.set_result(None)

    async def _give_up(self) -> None:
        """Cancel the server's statement and close the connection, whose state is unknown."""
        try:
            await self.connection.cancel_safe(timeout=_STOPPED_WITHIN_S)
        except psycopg.Error as error:
            _log.warning("Could not cancel a statement.", error=error)
        finally:
            self._server.finish()


class HotConnections:
    """Connections that stay open between statements.

    The underlying pool creates connections and replaces broken or old ones. Borrowing from that pool costs
    more CPU time than a small statement. If all connections are in use, borrowers queue.
    """

    def __init__(
        self, pool: psycopg_pool.AsyncConnectionPool[Connection], size: int, timeout_s: float
    ) -> None:
        self._pool = pool
        self._timeout_s = timeout_s
        self._free = asyncio.Semaphore(size)
        self._idle: list[HotConnection] = []

    async def borrow(self) -> HotConnection:
        """Return a connection, which the caller must pass to `give_back`.

        Raises psycopg's errors, or Unavailable if no connection becomes free in time.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._free.acquire()
        except TimeoutError as error:
            raise Unavailable("All database connections are in use; try again later.") from error
        try:
            return await self._take()
        except BaseException:
            self._free.release()
            raise

    async def give_back(self, hot: HotConnection) -> None:
        """Keep the connection for the next borrower, or return it to the pool if it is broken or old."""
        try:
            if hot.is_fresh() and not self._pool.closed:
                hot.returned_at = time.monotonic()
                self._idle.append(hot)
                await self._return_unused()
            else:
                await self._pool.putconn(hot.connection)
        finally:
            self._free.release()

    async def close(self) -> None:
        while self._idle:
            await self._pool.putconn(self._idle.pop().connection)

    async def _return_unused(self) -> None:
        """Return the connection with the longest idle time to the pool if it is surplus."""
        if len(self._idle) > 1 and time.monotonic() - self._idle[0].returned_at > UNUSED_FOR_S:
            await self._pool.putconn(self._idle.pop(0).connection)

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
