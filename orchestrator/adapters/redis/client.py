"""Makes Redis clients that fail soon and never repeat a command by themselves."""

from __future__ import annotations

from importlib import resources

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

CONNECT_TIMEOUT_S = 1.0
REPLY_TIMEOUT_S = 2.0
HEALTH_CHECK_EVERY_S = 5


def connect(url: str, *, reply_timeout_s: float = REPLY_TIMEOUT_S, max_connections: int = 32) -> Redis:
    """A client over its own pool; it belongs to the event loop that first uses it.

    Callers wait for a free connection. A reply that was lost may belong to a command that was carried
    out, so nothing is retried here (redis-py's own ten retries would apply a script twice).
    """
    pool = BlockingConnectionPool.from_url(  # pyright: ignore[reportUnknownMemberType]  # untyped arguments
        url,
        max_connections=max_connections,
        timeout=reply_timeout_s,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        socket_timeout=reply_timeout_s,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
        health_check_interval=HEALTH_CHECK_EVERY_S,
    )
    return Redis.from_pool(pool)


def read_script(name: str) -> str:
    """The text of `lua/<name>.lua`."""
    return (resources.files("orchestrator.adapters.redis") / "lua" / f"{name}.lua").read_text(
        encoding="utf-8"
    )
