"""External dependencies of tool calls: transports, shared rate limits, a shared cache."""

from typing import Protocol

from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.types import Json, JsonObject


class ToolTransport(Protocol):
    """A transport for calls of tools that are not service methods."""

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        """Call the tool once and return its size-limited response; the caller validates schemas.

        Cancellation stops what can be stopped. Raises ToolFailure, and ConfigurationError for an unsupported
        implementation.
        """
        ...


class RateLimits(Protocol):
    """Counts the calls of the last minute, for all workers together."""

    async def take(self, key: str, *, per_minute: int) -> float:
        """Count a call, unless `per_minute` calls were counted in the last 60 seconds.

        Returns 0 if it was counted, or the seconds until it can be. Raises Unavailable.
        """
        ...


class ToolCache(Protocol):
    """A result cache shared by all workers."""

    async def get(self, key: str) -> bytes | None:
        """Return the cached value of `key`. Raises Unavailable."""
        ...

    async def put(self, key: str, value: bytes, *, ttl_ms: int) -> None:
        """Cache a value for `ttl_ms` milliseconds. Raises Unavailable."""
        ...
