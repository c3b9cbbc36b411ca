"""The transports for a domain's HTTP and MCP tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.adapters.tools.http import HttpTools
from orchestrator.domain.model import Domain, Implementation, ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.errors import ConfigurationError, Problem
from orchestrator.ports.tools import ToolTransport
from orchestrator.types import Json, JsonObject

if TYPE_CHECKING:
    from orchestrator.adapters.tools.mcp import McpTools


class Transports:
    """A `ToolTransport` that selects a transport by the tool's implementation, bound to one event loop.

    `environment`: source of secrets, read at each call. Default: the process's environment.
    """

    def __init__(self, domain: Domain, *, environment: Mapping[str, str] | None = None) -> None:
        network = domain.config.network
        self._http = HttpTools(network, environment=environment, credentials=domain.config.credentials)
        self._mcp = _open_mcp(domain, environment)
        self._carriers: dict[Implementation, ToolTransport] = {Implementation.HTTP: self._http}
        if self._mcp is not None:
            self._carriers[Implementation.MCP] = self._mcp

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        carrier = self._carriers.get(tool.implementation)
        if carrier is None:
            message = f"can't be called: no {tool.implementation.value} client is configured"
            raise ConfigurationError([Problem(f"tools.yaml: tools.{tool.tool_id}", message)])
        return await carrier.send(tool, arguments, call)

    async def close(self) -> None:
        if self._mcp is not None:
            await self._mcp.close()
        await self._http.close()


def _open_mcp(domain: Domain, environment: Mapping[str, str] | None) -> McpTools | None:
    """Open the MCP transport, or return None if the domain has no MCP tools.

    Import the MCP library only if necessary, because the import takes a quarter of a process's startup time.
    """
    if all(tool.implementation is not Implementation.MCP for tool in domain.tools.values()):
        return None
    from orchestrator.adapters.tools.mcp import McpTools  # noqa: PLC0415

    return McpTools(domain.config.network, Path(domain.folder), environment=environment)
