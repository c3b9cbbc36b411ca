"""Redis clients that fail fast and never retry a command."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from importlib import resources
from typing import Any, Generic, TypeVar

import redis.sentinel
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, RedisError  # noqa: A004  # the driver's own name for it

from orchestrator.adapters.redis.address import Watched, is_socket, read_watched
from orchestrator.errors import Unavailable

CONNECT_TIMEOUT_S = 1.0
REPLY_TIMEOUT_S = 2.0
HEALTH_CHECK_EVERY_S = 5

_Item = TypeVar("_Item")
_Reply = TypeVar("_Reply")


class _Sending(AbstractConnection):
    """A connection that handles cancellation and closed sockets correctly when sending.

    redis-py sends within `asyncio.wait_for`, which before Python 3.12 can lose a cancellation. On a closed
    connection, redis-py raises the event loop's errors instead of its own errors.
    """

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        task = asyncio.current_task()
        earlier = 0 if task is None else task.cancelling()
        await super().send_packed_command(command, check_health)
        if task is not None and task.cancelling() > earlier:
            await self.disconnect(nowait=True)  # no caller will read the reply
            raise asyncio.CancelledError

    async def _send_packed_command(self, command: Iterable[bytes]) -> None:
        if self._writer is None or self._writer.transport.is_closing():
            raise ConnectionError("The connection was closed before the command was sent.")
        await super()._send_packed_command(command)


class Gathered(Generic[_Item, _Reply]):
    """A batcher that sends many callers' items in one round trip. Items added during a send join the next batch.

    Args:
        send: sends a batch. All callers in the batch get the same reply or error. Never called concurrently.
    """

    def __init__(self, send: Callable[[list[_Item]], Awaitable[_Reply]]) -> None:
        self._send = send
        self._items: list[_Item] = []
        self._sending: asyncio.Task[_Reply] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def add(self, item: _Item) -> _Reply:
        """Send the item in the next batch, even if the caller is canceled. Return the batch's reply."""
        self._items.append(item)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_next())
        return await asyncio.shield(self._sending)

    async def settle(self) -> None:
        """Wait until the batch in transit, if any, has been sent."""
        async with self._one_at_a_time:
            return

    async def _send_next(self) -> _Reply:
        async with self._one_at_a_time:
            items, self._items, self._sending = self._items, [], None
            return await self._send(items)


class _WatchedPool(SentinelConnectionPool, BlockingConnectionPool):
    """A pool of connections to the current master. Callers wait for a free connection."""

    async def disconnect(self, inuse_connections: bool = True) -> None:
        """Close the idle connections to the master.

        `inuse_connections`: True to also close connections in use and all connections to the sentinels.
        """
        await super().disconnect(inuse_connections)
        if inuse_connections:
            manager: Any = self.sentinel_manager  # pyright: ignore[reportUnknownMemberType]  # untyped
            for sentinel in manager.sentinels:
                await sentinel.connection_pool.disconnect()


def connect(url: str, *, reply_timeout_s: float = REPLY_TIMEOUT_S, max_connections: int = 32) -> Redis:
    """Create a client with a separate pool, bound to the event loop that first uses it.

    `reply_timeout_s` limits each wait for a reply and each wait for a free connection. The client never
    retries, because a command whose reply was lost may have run.
    """
    options: dict[str, Any] = {
        "max_connections": max_connections,
        "timeout": reply_timeout_s,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": reply_timeout_s,
        "retry": Retry(NoBackoff(), 0),
        "health_check_interval": HEALTH_CHECK_EVERY_S,
    }
    if not is_socket(url):
        options["socket_keepalive"] = True
    watched = read_watched(url)
    if watched is not None:
        return _connect_to_master(watched, options)
    pool = BlockingConnectionPool.from_url(url, **options)  # pyright: ignore[reportUnknownMemberType]  # untyped arguments
    return _from_pool(pool)


def _connect_to_master(watched: Watched, options: dict[str, Any]) -> Redis:
    sentinels = Sentinel(
        watched.sentinels,
        sentinel_kwargs={
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "socket_timeout": CONNECT_TIMEOUT_S,
            "retry": Retry(NoBackoff(), 0),
        },
    )
    pool = _WatchedPool(
        watched.master,
        sentinels,
        db=watched.database,
        username=watched.user,
        password=watched.password,
        **options,
    )
    return _from_pool(pool)


def _from_pool(pool: BlockingConnectionPool) -> Redis:
    untyped: Any = pool
    untyped.connection_class = type("Connection", (_Sending, untyped.connection_class), {})
    return Redis.from_pool(pool)


@contextmanager
def connect_blocking(url: str, *, timeout_s: float) -> Generator[redis.Redis]:
    """Open a blocking client. `timeout_s` limits each connection attempt and each reply."""
    limits: dict[str, Any] = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
    watched = read_watched(url)
    with ExitStack() as stack:
        if watched is None:
            server: Any = redis.Redis.from_url(url, **limits)  # pyright: ignore[reportUnknownMemberType]  # untyped arguments
        else:
            sentinels = redis.sentinel.Sentinel(watched.sentinels, sentinel_kwargs=limits)
            for sentinel in sentinels.sentinels:
                stack.callback(sentinel.close)
            server = sentinels.master_for(  # pyright: ignore[reportUnknownMemberType]  # untyped arguments
                watched.master,
                db=watched.database,
                username=watched.user,
                password=watched.password,
                **limits,
            )
        yield stack.enter_context(server)


@contextmanager
def translated(message: str = "Redis is not responding; try again later.") -> Generator[None]:
    """Translate redis-py's errors to Unavailable with `message`."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise Unavailable(message) from error


def read_script(name: str) -> str:
    return (resources.files("orchestrator.adapters.redis") / "lua" / f"{name}.lua").read_text(
        encoding="utf-8"
    )
