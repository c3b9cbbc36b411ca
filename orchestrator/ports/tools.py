"""Port: what tool calls need from outside: transports to other systems, shared rate limits, a shared cache."""

from typing import Protocol

from orchestrator.domain.model import ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.types import Json, JsonObject


class ToolTransport(Protocol):
    """Carries calls to tools that are no methods of the domain's services."""

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        """Call the tool once and give what it answered, bounded in size; schemas are the caller's business.

        Cancelling it stops what can be stopped. Raises ToolFailure, and ConfigurationError for an
        implementation that it does not carry.
        """
        ...


class RateLimits(Protocol):
    """Counts calls over the last minute, for all workers together."""

    async def take(self, key: str, *, per_minute: int) -> float:
        """Count a call, unless `per_minute` of them were counted within the last 60 seconds.

        Returns 0 when it was counted, else the seconds until there is room. Raises Unavailable.
        """
        ...


class ToolCache(Protocol):
    """Keeps answers for a while, for all workers together."""

    async def get(self, key: str) -> bytes | None:
        """Give what is kept under `key`. Raises Unavailable."""
        ...

    async def put(self, key: str, value: bytes, *, ttl_ms: int) -> None:
        """Keep a value for `ttl_ms` milliseconds. Raises Unavailable."""
        ...
