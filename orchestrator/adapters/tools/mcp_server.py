"""A session with an MCP server, opened on first use and reopened after the server dies.

The `mcp` library requires that the same task opens and closes a session, so each session has a separate task.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from mcp import MCPError
from mcp.client import Client, Transport
from mcp_types import CONNECTION_CLOSED, CallToolResult, RequestParamsMeta, Tool

from orchestrator.errors import Unavailable
from orchestrator.telemetry import get_logger
from orchestrator.types import JsonObject

START_WITHIN_S = 20.0
STOP_WITHIN_S = 10.0
START_AGAIN_AFTER_S = 1.0
MOST_UNANSWERED = 3
"""Number of consecutive unanswered calls after which a server counts as unresponsive."""
MOST_PAGES = 100

SESSION_UNKNOWN = "Session terminated"
"""The `mcp` library's message if an HTTP server has lost the session, and therefore did nothing."""

OpenTransport = Callable[[Callable[[], None]], Transport]
"""A function that connects to the server, or starts its process and calls the argument when its output ends."""

_log = get_logger(__name__)


@dataclass(slots=True)
class _Session:
    """A session and its task. `ready`: the client and the server's tools, set after the tools are listed."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Future[tuple[Client, Mapping[str, Tool]]] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    task: asyncio.Task[None] | None = None
    unanswered: int = 0


class McpServer:
    """A server and its current session. `name`: the server's name in the log."""

    def __init__(self, name: str, open_transport: OpenTransport) -> None:
        self._name = name
        self._open_transport = open_transport
        self._session: _Session | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._failed_at: float | None = None

    async def tools(self) -> Mapping[str, Tool]:
        """Return the server's tools. Raises Unavailable if no session can be opened."""
        session = await self._ready_session()
        return session.ready.result()[1]

    async def call(self, name: str, arguments: JsonObject, meta: JsonObject) -> CallToolResult:
        """Call a tool. If the server has lost the session, repeat the call in a new session.

        Raises MCPError, Unavailable, or the `mcp` library's errors for malformed responses.
        """
        try:
            return await self._call(name, arguments, meta)
        except MCPError as error:
            if error.message != SESSION_UNKNOWN:
                raise
        return await self._call(name, arguments, meta)

    async def close(self) -> None:
        if self._session is not None:
            self._drop(self._session)
        if not self._ending:
            return
        _, late = await asyncio.wait(self._ending, timeout=STOP_WITHIN_S)
        for task in late:
            _log.error("Could not end a session with an MCP server.", server=self._name)
            task.cancel()

    async def _call(self, name: str, arguments: JsonObject, meta: JsonObject) -> CallToolResult:
        session = await self._ready_session()
        client, _ = session.ready.result()
        try:
            result = await client.call_tool(name, arguments, meta=cast("RequestParamsMeta", meta))
        except asyncio.CancelledError:
            self._count_unanswered(session)
            raise
        except MCPError as error:
            session.unanswered = 0
            if error.code == CONNECTION_CLOSED or error.message == SESSION_UNKNOWN:
                self._drop(session)
            raise
        session.unanswered = 0
        return result

    async def _ready_session(self) -> _Session:
        session = self._session
        if session is None:
            session = self._session = self._begin()
        await asyncio.shield(session.ready)
        return session

    def _begin(self) -> _Session:
        now = asyncio.get_running_loop().time()
        if self._failed_at is not None and now - self._failed_at < START_AGAIN_AFTER_S:
            raise Unavailable(f"The MCP server {self._name} could not be reached; try again later.")
        session = _Session()
        session.ready.add_done_callback(_heard)
        session.task = asyncio.create_task(self._hold(session), name=f"MCP {self._name}")
        self._ending.add(session.task)
        session.task.add_done_callback(self._ending.discard)
        return session

    async def _hold(self, session: _Session) -> None:
        try:
            async with asyncio.timeout(START_WITHIN_S) as starting:
                async with Client(self._open_transport(lambda: self._drop(session)), cache=None) as client:
                    tools = await _list_tools(client)
                    starting.reschedule(None)
                    self._failed_at = None
                    session.ready.set_result((client, tools))
                    await session.stop.wait()
        except Exception as error:  # noqa: BLE001 - a server's error only ends its session
            self._note_failure(session, error)
        finally:
            self._forget(session)

    def _note_failure(self, session: _Session, error: Exception) -> None:
        _log.warning("A session with an MCP server failed.", server=self._name, error=_innermost(error))
        if session.ready.done():
            return
        self._failed_at = asyncio.get_running_loop().time()
        session.ready.set_exception(Unavailable(f"The MCP server {self._name} can't be reached."))

    def _count_unanswered(self, session: _Session) -> None:
        session.unanswered += 1
        if session.unanswered >= MOST_UNANSWERED and self._session is session:
            _log.error("An unresponsive MCP server was abandoned.", server=self._name)
            self._drop(session)

    def _drop(self, session: _Session) -> None:
        """Discard a session. The next call opens another session."""
        session.stop.set()
        if not session.ready.done() and session.task is not None:
            session.task.cancel()
        self._forget(session)

    def _forget(self, session: _Session) -> None:
        if self._session is session:
            self._session = None
        if not session.ready.done():
            session.ready.set_exception(Unavailable(f"The MCP server {self._name} was stopped."))


async def _list_tools(client: Client) -> dict[str, Tool]:
    tools: dict[str, Tool] = {}
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools.update({tool.name: tool for tool in page.tools})
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _heard(ready: asyncio.Future[tuple[Client, Mapping[str, Tool]]]) -> None:
    """Mark a failure as retrieved: it is already logged, and there may be no caller waiting for it."""
    if not ready.cancelled():
        ready.exception()


def _innermost(error: BaseException) -> BaseException:
    """Return the first error in a group of any depth, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return _innermost(group.exceptions[0])
    return error
