"""Call tools of MCP servers. Tools with the same server settings share a session.

A tool's manifest inputs are checked against its server's schema. Its result is structured content or JSON text.
"""

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

import anyio
import httpx2
import orjson
from mcp import MCPError
from mcp.client import Transport
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    ContentBlock,
    JSONRPCError,
    JSONRPCMessage,
    TextContent,
)

from orchestrator.adapters.tools.addresses import AddressGuard
from orchestrator.adapters.tools.guarded import GuardedTransport
from orchestrator.adapters.tools.mcp_lines import TOO_LONG, limited_encoding
from orchestrator.adapters.tools.mcp_server import McpServer
from orchestrator.domain.configuration import Network
from orchestrator.domain.model import ToolSpec
from orchestrator.domain.placeholders import fill_placeholders, variable_placeholders
from orchestrator.domain.services import ToolCall
from orchestrator.errors import FailureCategory, ToolFailure, Unavailable
from orchestrator.redaction import learn_secrets
from orchestrator.saying import say
from orchestrator.telemetry import get_logger
from orchestrator.types import Json, JsonObject, is_object

IDEMPOTENCY_KEY = "parley/idempotency_key"
"""The `_meta` member that contains the call's idempotency key."""

WIRE_FACTOR = 3
"""Maximum size of a response, as a multiple of the output limit.

A response contains the output twice, as text and as structured content, and the text is escaped.
"""

_log = get_logger(__name__)
logging.getLogger("mcp.client.stdio").disabled = True  # its messages quote the server's output


class McpTools:
    """A `ToolTransport` for MCP. `folder`: the working directory for server commands."""

    def __init__(
        self, network: Network, folder: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self._network = network
        self._folder = folder
        self._environment = os.environ if environment is None else environment
        self._servers: dict[tuple[Any, ...], McpServer] = {}

    async def send(self, tool: ToolSpec, arguments: JsonObject, call: ToolCall) -> Json:
        self._check_environment(tool)
        server = self._server(tool)
        try:
            await self._check_fit(server, tool)
            result = await server.call(tool.target, arguments, {IDEMPOTENCY_KEY: call.idempotency_key})
        except Unavailable as error:  # without a session, nothing was sent
            raise ToolFailure(
                FailureCategory.SERVER_ERROR, say("tool_unreachable", tool=tool.name)
            ) from error
        except MCPError as error:
            _log.warning("An MCP server refused a call.", tool=tool.tool_id, code=error.code)
            raise _translate(tool, error) from error
        if result.is_error:
            raise _reported_failure(tool, read_result(result))
        return read_result(result)

    async def close(self) -> None:
        for server in self._servers.values():
            await server.close()

    def _server(self, tool: ToolSpec) -> McpServer:
        options = tool.options
        key = (
            options["url"],
            tuple(options["command"]),
            tuple(sorted(options["headers"].items())),
            tuple(options["environment"]),
        )
        server = self._servers.get(key)
        if server is None:
            name: str = options["url"] or options["command"][0]
            server = self._servers[key] = McpServer(name, lambda on_end: self._open(tool, on_end))
        return server

    def _open(self, tool: ToolSpec, on_end: Callable[[], None]) -> Transport:
        options = tool.options
        if options["url"] is None:
            program, *arguments = options["command"]
            variables = {name: self._environment[name] for name in options["environment"]}
            server = StdioServerParameters(
                command=program,
                args=arguments,
                env=variables,
                cwd=self._folder,
                encoding=limited_encoding(WIRE_FACTOR * self._network.max_output_bytes),
                encoding_error_handler="replace",
            )
            return _open_stdio(server, on_end)
        headers = {
            name: fill_placeholders(text, str, self._environment.__getitem__)
            for name, text in options["headers"].items()
        }
        return _open_http(options["url"], headers, self._network)

    def _check_environment(self, tool: ToolSpec) -> None:
        texts: list[str] = list(tool.options["headers"].values())
        secrets = list(chain.from_iterable(map(variable_placeholders, texts)))
        needed = [*tool.options["environment"], *secrets]
        missing = [name for name in needed if name not in self._environment]
        if missing:
            _log.error("A tool's environment variables are missing.", tool=tool.tool_id, variables=missing)
            raise ToolFailure(FailureCategory.AUTH_ERROR, say("tool_not_set_up", tool=tool.name))
        learn_secrets(self._environment[name] for name in secrets)

    async def _check_fit(self, server: McpServer, tool: ToolSpec) -> None:
        """Raise ToolFailure unless the server has the tool and accepts the manifest's inputs."""
        offered = (await server.tools()).get(tool.target)
        mistake = (
            f"the server has no tool {tool.target!r}"
            if offered is None
            else find_incompatibility(tool.input_schema, offered.input_schema)
        )
        if mistake is not None:
            _log.error("An MCP server does not match the manifest.", tool=tool.tool_id, mistake=mistake)
            raise ToolFailure(FailureCategory.SERVER_ERROR, say("tool_not_responding", tool=tool.name))


@asynccontextmanager
async def _open_stdio(
    server: StdioServerParameters, on_end: Callable[[], None]
) -> AsyncGenerator[tuple[Any, Any]]:
    """Start a server as a child process, and stop it at the end of the block.

    `on_end`: called when the server's output ends, or when it contains an overlong message that belongs to no call.
    """
    with Path(os.devnull).open("w") as nowhere:  # noqa: ASYNC230 - it doesn't block; the output could quote requests
        async with stdio_client(server, errlog=nowhere) as (messages, outgoing):
            to_us, incoming = anyio.create_memory_object_stream[SessionMessage](0)

            async def forward() -> None:
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    async with to_us:
                        async for message in messages:
                            if isinstance(message, Exception):
                                _log.warning("An MCP server wrote an invalid message.")
                                continue
                            if _is_unassigned(message.message):
                                _log.warning("An MCP server wrote a message that is too long.")
                                break
                            await to_us.send(message)
                on_end()

            async with anyio.create_task_group() as tasks, incoming:
                tasks.start_soon(forward)
                yield incoming, outgoing
                tasks.cancel_scope.cancel()


def _is_unassigned(message: JSONRPCMessage) -> bool:
    return isinstance(message, JSONRPCError) and message.id is None and message.error.code == TOO_LONG


@asynccontextmanager
async def _open_http(
    url: str, headers: Mapping[str, str], network: Network
) -> AsyncGenerator[tuple[Any, Any]]:
    max_bytes = WIRE_FACTOR * network.max_output_bytes
    transport = GuardedTransport(AddressGuard(network.private_networks), max_bytes=max_bytes, listens=True)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            httpx2.AsyncClient(
                transport=transport,
                trust_env=False,
                headers={**headers, "Accept-Encoding": "identity"},
                timeout=httpx2.Timeout(None, connect=network.connect_timeout_s),
            )
        )
        yield await stack.enter_async_context(
            streamable_http_client(url, http_client=client, max_sse_event_size=max_bytes)
        )


def _translate(tool: ToolSpec, error: MCPError) -> ToolFailure:
    if error.code in {INVALID_PARAMS, METHOD_NOT_FOUND}:
        message = say("tool_bad_values", tool=tool.name)
        return ToolFailure(FailureCategory.VALIDATION_ERROR, message)
    return ToolFailure(FailureCategory.SERVER_ERROR, say("tool_failed", tool=tool.name), undecided=True)


def _reported_failure(tool: ToolSpec, report: Json) -> ToolFailure:
    """Return a failure that the tool reported, with its category if known, but without its text.

    After a timeout or an internal error, the tool may have acted (RT-33).
    """
    category = report.get("category") if is_object(report) else None
    known = isinstance(category, str) and category in set(FailureCategory)
    _log.warning("An MCP tool reported a failure.", tool=tool.tool_id, category=category if known else None)
    reported = FailureCategory(category) if known else FailureCategory.SERVER_ERROR
    undecided = reported in {FailureCategory.TIMEOUT, FailureCategory.SERVER_ERROR}
    return ToolFailure(reported, say("tool_failed", tool=tool.name), undecided=undecided)


def find_incompatibility(ours: JsonObject, theirs: JsonObject) -> str | None:
    """Return why calls that match the manifest's schema may not match the server's schema, or None.

    Only names, required inputs and plain types are compared. The server validates the rest at each call.
    """
    our_names: JsonObject = ours.get("properties", {})
    their_names: JsonObject = theirs.get("properties", {})
    required = set(ours.get("required", ()))
    for name in theirs.get("required", ()):
        if name not in required:
            return f"the server requires {name!r}, but the manifest does not"
    for name, schema in our_names.items():
        if name not in their_names:
            if theirs.get("additionalProperties") is False or their_names:
                return f"the server does not accept {name!r}"
            continue
        if not _types_meet(schema, their_names[name]):
            return (
                f"{name!r} is {schema['type']} in the manifest and {their_names[name]['type']} on the server"
            )
    return None


def _types_meet(ours: Json, theirs: Json) -> bool:
    if not (is_object(ours) and is_object(theirs) and "type" in ours and "type" in theirs):
        return True
    left, right = _types(ours["type"]), _types(theirs["type"])
    return left <= right | ({"integer"} if "number" in right else set())


def _types(value: Json) -> set[str]:
    return {value} if isinstance(value, str) else set(value)


def read_result(result: CallToolResult) -> Json:
    """Return the structured content, or the JSON object in the only text block.

    If the result has neither, return its joined texts and any other content blocks.
    """
    if result.structured_content is not None:
        return result.structured_content
    blocks = result.content
    texts = [block.text for block in blocks if isinstance(block, TextContent)]
    if len(blocks) == 1 and texts:
        value = _parse_object(texts[0])
        if value is not None:
            return value
    others = [block for block in blocks if not isinstance(block, TextContent)]
    return {"text": "\n".join(texts), **({"content": _dump(others)} if others else {})}


def _parse_object(text: str) -> JsonObject | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if is_object(value) else None


def _dump(blocks: Sequence[ContentBlock]) -> list[JsonObject]:
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in blocks]
