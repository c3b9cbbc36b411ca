"""Everything that calls tools beyond services: by the tool's implementation, for one domain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from orchestrator.adapters.tools.http import HttpTools
from orchestrator.adapters.tools.mcp import McpTools
from orchestrator.domain.model import Domain, Implementation, ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.errors import ConfigurationError, Problem
from orchestrator.ports.tools import ToolTransport
from orchestrator.types import Json, JsonObject


class Transports:
    """Implements `ports.tools.ToolTransport`. Belongs to one event loop; `close` it there.

    `environment`: where secrets are read, at the time of each call; None: the process's own.
    """

    def __init__(self, domain: Domain, *, environment: Mapping[str, str] | None = None) -> None:
        network = domain.config.network
        self._http = HttpTools(network, environment=environment)
        self._mcp = McpTools(network, Path(domain.folder), environment=environment)
        self._carriers: Mapping[Implementation, ToolTransport] = {
            Implementation.HTTP: self._http,
            Implementation.MCP: self._mcp,
        }

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        """See `ToolTransport.send`."""
        carrier = self._carriers.get(tool.implementation)
        if carrier is None:
            message = f"Tools over {tool.implementation.value} are not called from here."
            raise ConfigurationError([Problem(f"tools.yaml: tools.{tool.tool_id}", message)])
        return await carrier.send(tool, arguments, call)

    async def close(self) -> None:
        """End all connections, sessions and processes."""
        await self._mcp.close()
        await self._http.close()
