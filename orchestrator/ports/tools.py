"""Ports for tool calls: transports, shared rate limits and a shared cache."""

from typing import Protocol

from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.types import Json, JsonObject


class ToolTransport(Protocol):
    """A transport for tools that are not service methods."""

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        """Call the tool once. Return its response, which is limited in size but not validated.

        Cancellation stops the call if the transport supports this. Raises ToolFailure.
        """
        ...


class RateLimits(Protocol):
    """Rate limits for tool calls, shared by all workers."""

    async def take(self, key: str, *, per_minute: int) -> float:
        """Count a call and return 0, or return the seconds to wait if the limit is reached.

        The limit is `per_minute` calls in the last 60 seconds. Raises Unavailable.
        """
        ...


class ToolCache(Protocol):
    """A cache of tool results, shared by all workers."""

    async def get(self, key: str) -> bytes | None:
        """Return a cached value, or None if the key is not cached. Raises Unavailable."""
        ...

    async def put(self, key: str, value: bytes, *, ttl_ms: int) -> None:
        """Cache a value for `ttl_ms` milliseconds. Raises Unavailable."""
        ...
