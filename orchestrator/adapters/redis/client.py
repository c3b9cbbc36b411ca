"""Makes Redis clients that fail soon and never repeat a command by themselves."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from importlib import resources
from typing import Any, Generic, TypeVar, cast

import hiredis
import redis.sentinel
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, NoScriptError, RedisError  # noqa: A004  # the driver's own name for it

from orchestrator.adapters.redis.address import Watched, is_socket, read_watched
from orchestrator.errors import Unavailable

CONNECT_TIMEOUT_S = 1.0
REPLY_TIMEOUT_S = 2.0
HEALTH_CHECK_EVERY_S = 5

Command = tuple[str | bytes | int | float, ...]
_pack = cast("Callable[[Command], bytes]", hiredis.pack_command)  # pyright: ignore[reportUnknownMemberType]
_Item = TypeVar("_Item")
_Reply = TypeVar("_Reply")


class _Sending(AbstractConnection):
    """Can be cancelled while it sends, and says so in the driver's terms when the server is gone.

    The driver sends within `asyncio.wait_for`, which before Python 3.12 forgets a cancellation that comes as it ends.
    On a connection that was closed meanwhile it fails with whatever the event loop or a missing stream raises.
    """

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        task = asyncio.current_task()
        earlier = 0 if task is None else task.cancelling()
        await super().send_packed_command(command, check_health)
        if task is not None and task.cancelling() > earlier:
            await self.disconnect(nowait=True)  # the answer is nobody's any more
            raise asyncio.CancelledError

    async def run(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go; gives their replies as they came, within the reply time-out for all of them.

        The driver packs them in Python, and sends each of them in a task with a timer.
        """
        async with asyncio.timeout(self.socket_timeout):
            await self._send_packed_command([_pack(one) for one in commands])
            return [await self.read_response(timeout=math.inf) for _ in commands]

    async def _send_packed_command(self, command: Iterable[bytes]) -> None:
        if self._writer is None or self._writer.transport.is_closing():
            raise ConnectionError("The connection was closed before the command was sent.")
        await super()._send_packed_command(command)


class KeptConnection:
    """A connection for commands, one after the other; now and then the pool has a look at it.

    The way through the pool costs more CPU than a small command. Belongs to one borrower at a time.
    """

    def __init__(self, client: Redis) -> None:
        self._pool: Any = client.connection_pool
        self._connection: Any = None
        self._kept_until = 0.0

    async def run(self, commands: Sequence[Command]) -> list[Any]:
        """Send commands in one go; gives their replies as they came. Raises the driver's errors, and TimeoutError."""
        connection = await self._take()
        try:
            return await connection.run(commands)
        except BaseException:
            await connection.disconnect(nowait=True)  # whatever else was answered is nobody's any more
            raise

    async def run_script(self, script: str, digest: str, keys: Sequence[str], arguments: Command) -> Any:
        """Run a script, of which the server may know the digest; gives its reply. Raises as `run` does."""
        rest = (len(keys), *keys, *arguments)
        try:
            [reply] = await self.run([("EVALSHA", digest, *rest)])
        except NoScriptError:
            [reply] = await self.run([("EVAL", script, *rest)])
        return reply

    async def give_back(self) -> None:
        """Leave the connection to the pool."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._pool.release(connection)

    async def _take(self) -> Any:
        kept = self._connection
        if (
            kept is None
            or time.monotonic() > self._kept_until
            or not kept.is_connected
            or await kept.can_read()
        ):
            await self.give_back()
            self._connection = await self._pool.get_connection()
            self._kept_until = time.monotonic() + HEALTH_CHECK_EVERY_S
        return self._connection


class Gathered(Generic[_Item, _Reply]):
    """Gathers what callers have to send while what was sent before is on its way: one round trip for many of them.

    Args:
        send: sends some; its result, or error, is everybody's. Never called twice at once.
    """

    def __init__(self, send: Callable[[list[_Item]], Awaitable[_Reply]]) -> None:
        self._send = send
        self._items: list[_Item] = []
        self._sending: asyncio.Task[_Reply] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def add(self, item: _Item) -> _Reply:
        """Send it with others, also when the caller is cancelled."""
        self._items.append(item)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_next())
        return await asyncio.shield(self._sending)

    async def settle(self) -> None:
        """Wait until what is on its way is sent."""
        async with self._one_at_a_time:
            return

    async def _send_next(self) -> _Reply:
        async with self._one_at_a_time:
            items, self._items, self._sending = self._items, [], None
            return await self._send(items)


class _WatchedPool(SentinelConnectionPool, BlockingConnectionPool):
    """Connections to whoever is the master, of which callers wait for a free one."""

    async def disconnect(self, inuse_connections: bool = True) -> None:
        """The connections to the sentinels go with the last of ours."""
        await super().disconnect(inuse_connections)
        if inuse_connections:
            manager: Any = self.sentinel_manager  # pyright: ignore[reportUnknownMemberType]  # untyped
            for sentinel in manager.sentinels:
                await sentinel.connection_pool.disconnect()


def connect(url: str, *, reply_timeout_s: float = REPLY_TIMEOUT_S, max_connections: int = 32) -> Redis:
    """A client over its own pool; it belongs to the event loop that first uses it.

    Callers wait for a free connection. A reply that was lost may belong to a command that was carried
    out, so nothing is retried here (redis-py's own ten retries would apply a script twice).
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
    """A client for commands, which have no event loop."""
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
def translated(message: str = "Redis does not answer; try again later.") -> Generator[None]:
    """Turn what the driver raises into Unavailable with this message."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise Unavailable(message) from error


def read_script(name: str) -> str:
    """The text of `lua/<name>.lua`."""
    return (resources.files("orchestrator.adapters.redis") / "lua" / f"{name}.lua").read_text(
        encoding="utf-8"
    )
