"""A process's database connections: a psycopg pool for the hot path, and an SQLAlchemy engine for the rest.

Both belong to one event loop.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any, LiteralString, Self

import orjson
import psycopg
import psycopg_pool
from psycopg.rows import TupleRow
from psycopg.types.json import set_json_loads
from sqlalchemy import Executable, Row, text
from sqlalchemy.ext.asyncio import AsyncConnection as EngineConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from orchestrator.adapters.postgres.errors import Translated, role_taken
from orchestrator.adapters.postgres.hot_connections import (
    UNUSED_FOR_S,
    Connection,
    HotConnection,
    HotConnections,
    Query,
)
from orchestrator.ports.access import acting_tenant

_KEEPALIVE = {
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
LIMITS = {"statement_timeout": "15s", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "60s"}
"""Server settings that limit each statement and transaction."""
_LIMITS = " ".join(f"-c {name}={value}" for name, value in LIMITS.items())
_NAME_TENANT: LiteralString = "SELECT set_config('parley.tenant', %(name)s, true)"
_TAKE_ROLE: LiteralString = "SELECT set_config('role', %(name)s, true)"
_READ_ONLY: LiteralString = "SELECT set_config('transaction_read_only', %(name)s, true)"
_PLANS = (
    "-c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off -c enable_bitmapscan=off"
    " -c enable_hashjoin=off -c enable_mergejoin=off"
)
"""Server settings that force index plans.

Hot-path statements access single rows and are planned only once, possibly while the tables are empty.
"""


def connection_options(application: str) -> dict[str, Any]:
    """Return options for direct connections to the server."""
    return {**_KEEPALIVE, "options": _LIMITS, "application_name": application}


def pooled_options(application: str) -> dict[str, Any]:
    """Return options for connections to a pooler, which assigns a server connection per transaction.

    The pooler would reject session settings, or leak them to other clients. Therefore, statements are not
    prepared, and the login role has the limits (`roles.make_login`). Each call plans its statement, so plans
    need not be forced.
    """
    return {**_KEEPALIVE, "prepare_threshold": None, "application_name": application}


class Database:
    """A process's connections to one database, opened in the event loop that uses them."""

    def __init__(
        self,
        database_url: str,
        *,
        size: int = 8,
        reading_size: int = 4,
        application: str = "parley",
        pooled: bool = False,
        timeout_s: float = 10.0,
        tenant_bound: bool = False,
        role: str | None = None,
        read_only: bool = False,
    ) -> None:
        """Configure the connections without opening them.

        Args:
            database_url: a ``postgresql://`` URL.
            size: number of hot-path connections.
            reading_size: number of additional connections for reads and rare writes.
            application: name of the connections in ``pg_stat_activity``.
            pooled: True if `database_url` is a pooler, which shares connections between transactions.
            timeout_s: maximum wait for a connection, in seconds.
            tenant_bound: True to set the tenant in every transaction (see `acting_tenant`), as the policies
                for the gateway's role require. Ignored if `role` is given.
            role: limits every transaction to this role's rights. Default: the login role's rights.
            read_only: True to reject all changes. Ignored if `role` or `tenant_bound` is given.
        """
        self.url = database_url
        options = pooled_options(application) if pooled else connection_options(application)
        hot = {} if pooled else {"options": f"{_LIMITS} {_PLANS}", "prepare_threshold": 0}
        self._opening: tuple[LiteralString, Callable[[], str]] | None = None
        if role is not None:
            self._opening = _TAKE_ROLE, lambda: role
        elif tenant_bound:
            self._opening = _NAME_TENANT, acting_tenant.get
        elif read_only:
            self._opening = _READ_ONLY, lambda: "on"
        self.pool: psycopg_pool.AsyncConnectionPool[Connection] = psycopg_pool.AsyncConnectionPool(
            database_url,
            open=False,
            min_size=0,
            max_size=size,
            max_idle=UNUSED_FOR_S,
            timeout=timeout_s,
            kwargs={**options, **hot, "autocommit": True, "cursor_factory": psycopg.AsyncRawCursor},
            configure=_configure,
            name=application,
        )
        self._hot = HotConnections(self.pool, size, timeout_s)
        self.engine: AsyncEngine = create_async_engine(
            engine_url(database_url),
            pool_size=reading_size,
            max_overflow=0,
            pool_timeout=timeout_s,
            pool_pre_ping=True,
            connect_args=options,
            json_serializer=dump_json,
            json_deserializer=orjson.loads,
            hide_parameters=True,
        )

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the pool without connecting. The first use raises an error if the server does not respond."""
        await self.pool.open(wait=False)

    async def close(self) -> None:
        await self._hot.close()
        await self.pool.close()
        await self.engine.dispose()

    async def fetch_one(self, query: Query, arguments: Mapping[str, Any]) -> TupleRow | None:
        """Run and commit a hot-path statement, and return its first row or None. Raises Unavailable, InvalidInput."""
        rows = await self.fetch_all(query, arguments)
        return rows[0] if rows else None

    async def fetch_all(self, query: Query, arguments: Mapping[str, Any]) -> list[TupleRow]:
        """Run and commit a hot-path statement, and return all rows. Raises Unavailable, InvalidInput."""
        async with self._acting() as hot:
            return await hot.fetch_all(query, arguments)

    @asynccontextmanager
    async def _acting(self) -> AsyncGenerator[HotConnection]:
        """Yield a hot-path connection.

        If the database was created with `role`, `tenant_bound` or `read_only`, the connection is in a
        transaction with that setting.
        """
        with Translated():
            hot = await self._hot.borrow()
            try:
                if self._opening is None:
                    yield hot
                    return
                opening, name = self._opening
                async with hot.transaction():
                    with role_taken():
                        await hot.fetch_all(opening, {"name": name()})
                    yield hot
            finally:
                await self._hot.give_back(hot)

    @asynccontextmanager
    async def hot_transaction(self) -> AsyncGenerator[HotConnection]:
        """Yield a connection for a transaction of several hot-path statements, committed at the end."""
        async with self._acting() as hot, nullcontext() if self._opening else hot.transaction():
            yield hot

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[EngineConnection]:
        """Yield an SQLAlchemy transaction, committed at the end."""
        with Translated():
            async with self.engine.begin() as connection:
                if self._opening is not None:
                    statement, name = self._opening
                    with role_taken():
                        opening = text(statement.replace("%(name)s", ":name"))
                        await connection.execute(opening, {"name": name()})
                yield connection

    async def read_one(
        self, query: Executable, arguments: Mapping[str, Any] | None = None
    ) -> Row[Any] | None:
        """Run an SQLAlchemy query in a new transaction, and return its only row or None."""
        async with self.transaction() as connection:
            return (await connection.execute(query, arguments)).one_or_none()

    async def read_all(
        self, query: Executable, arguments: Mapping[str, Any] | None = None
    ) -> Sequence[Row[Any]]:
        """Run an SQLAlchemy query in a new transaction, and return all rows."""
        async with self.transaction() as connection:
            return (await connection.execute(query, arguments)).all()

    async def write(self, change: Executable, arguments: Mapping[str, Any] | None = None) -> int:
        """Run an SQLAlchemy change in a new transaction, and return the number of affected rows."""
        async with self.transaction() as connection:
            changed: Any = await connection.execute(change, arguments)
            return changed.rowcount


def engine_url(database_url: str) -> str:
    """Return the URL with SQLAlchemy's driver name and syntax for socket folders."""
    scheme, _, rest = database_url.partition("://")
    user, at, place = rest.rpartition("@")
    if place.startswith("%2F"):
        server, _, name = place.partition("/")
        folder, _, port = server.partition(":")
        place = f"/{name}{'&' if '?' in name else '?'}host={folder}&port={port or 5432}"
    return f"{scheme}+psycopg://{user}{at}{place}"


def dump_json(value: Any) -> str:
    return orjson.dumps(value).decode()


async def _configure(connection: Connection) -> None:
    set_json_loads(orjson.loads, connection)
