"""An MCP server as a child process that communicates over standard input and output, line by line.

Unlike the `mcp` library's transport, this transport limits the length of lines.
"""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from orchestrator.telemetry import get_logger

CHUNK_BYTES = 65_536
EDGE_BYTES = 200
LEAVE_WITHIN_S = 2.0
"""Time for a server to exit after its input is closed, and again after SIGTERM, in seconds."""

_HEAD = re.compile(rb'^\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)\s*,\s*"result"')
_TAIL = re.compile(rb'"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*(\d+)\s*\}\s*$')

_log = get_logger(__name__)

Incoming = SessionMessage | Exception


@asynccontextmanager
async def open_stdio(
    command: Sequence[str],
    *,
    folder: Path,
    variables: Mapping[str, str],
    max_line_bytes: int,
    on_end: Callable[[], None],
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]]:
    """Start the server, connect to it, and stop it at the end of the block.

    `variables`: added to a minimal environment. `on_end`: called when the server's output ends. Raises
    OSError if the server cannot be started.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # its output could quote requests
        env={**get_default_environment(), **variables},
        cwd=folder,
        start_new_session=True,
        limit=max_line_bytes,
    )
    try:
        to_us, incoming = anyio.create_memory_object_stream[Incoming](0)
        outgoing, to_server = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks, incoming, outgoing:
            tasks.start_soon(_read, process, to_us, on_end)
            tasks.start_soon(_write, process, to_server)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


async def _read(
    process: asyncio.subprocess.Process,
    to_us: MemoryObjectSendStream[Incoming],
    on_end: Callable[[], None],
) -> None:
    """Forward messages until the server's output ends, then call `on_end`."""
    assert process.stdout is not None
    async with to_us:
        async for line in _lines(process.stdout):
            message = _overlong(line) if isinstance(line, _Edges) else _parse(line)
            if message is not None:
                with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await to_us.send(message)
        on_end()


async def _write(
    process: asyncio.subprocess.Process, to_server: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    assert process.stdin is not None
    async with to_server:
        async for message in to_server:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            try:
                process.stdin.write(line)
                await process.stdin.drain()
            except ConnectionError:
                return  # the server has exited, and `_read` ends the session


class _Edges(NamedTuple):
    """The start and the end of an overlong line."""

    head: bytes
    tail: bytes


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes | _Edges]:
    """Yield lines that end with a newline.

    For a line longer than the stream's limit, yield only its start and end.
    """
    head = tail = b""
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except asyncio.LimitOverrunError as error:
            piece = await stream.readexactly(error.consumed)
            head, tail = head or piece[:EDGE_BYTES], (tail + piece)[-EDGE_BYTES:]
        except asyncio.IncompleteReadError:
            return
        else:
            yield _Edges(head, (tail + line)[-EDGE_BYTES:]) if head else line
            head = tail = b""


def _parse(line: bytes) -> SessionMessage | None:
    """Parse a message. Return None for other output, such as a server's debug messages."""
    if not line.strip():
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValidationError:
        _log.warning("An MCP server wrote an invalid message.", bytes=len(line))
        return None


def _overlong(line: _Edges) -> SessionMessage | None:
    """Return an error response in place of an oversized response, or None if the call is unknown."""
    match = _HEAD.search(line.head) or _TAIL.search(line.tail)
    _log.error("An MCP server's response is too long.", known=match is not None)
    if match is None:
        return None
    error = ErrorData(code=INVALID_REQUEST, message="The response is too long.")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(match[1]), error=error))


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Close the server's input, so that the server exits.

    If the server doesn't exit, send signals to it and its children.
    """
    assert process.stdin is not None
    process.stdin.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        try:
            async with asyncio.timeout(LEAVE_WITHIN_S):
                await asyncio.gather(_drain(process), process.wait())
        except TimeoutError:
            continue
        return
    _log.error("Could not stop an MCP server.", pid=process.pid)


async def _drain(process: asyncio.subprocess.Process) -> None:
    """Drain the output, because a full pipe would keep the server from exiting."""
    assert process.stdout is not None
    while await process.stdout.read(CHUNK_BYTES):
        pass
