"""The transports for a domain's HTTP and MCP tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.adapters.tools.http import HttpTools
from orchestrator.domain.model import Domain, Implementation, ToolSpec
from orchestrator.domain.services import ToolCall
from orchestrator.types import Json, JsonObject

if TYPE_CHECKING:
    from orchestrator.adapters.tools.mcp import McpTools


class Transports:
    """A `ToolTransport` that selects a transport by the tool's implementation, bound to one event loop.

    `environment`: source of secrets, read at each call. Default: the process's environment.
    """

    def __init__(self, domain: Domain, *, environment: Mapping[str, str] | None = None) -> None:
        network = domain.config.network
        http = HttpTools(network, environment=environment, credentials=domain.config.credentials)
        self._carriers: dict[Implementation, HttpTools | McpTools] = {Implementation.HTTP: http}
        if any(tool.implementation is Implementation.MCP for tool in domain.tools.values()):
            # The import takes a quarter of a process's startup time.
            from orchestrator.adapters.tools.mcp import McpTools  # noqa: PLC0415

            mcp = McpTools(network, Path(domain.folder), environment=environment)
            self._carriers[Implementation.MCP] = mcp

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        return await self._carriers[tool.implementation].send(tool, arguments, call)

    async def close(self) -> None:
        for carrier in self._carriers.values():
            await carrier.close()
