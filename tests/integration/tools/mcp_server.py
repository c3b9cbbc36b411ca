"""A small real MCP server, for stdio (as a program) and streamable HTTP (as an application)."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, ImageContent, TextContent

NEVER = threading.Event()


def make_server() -> MCPServer:
    server = MCPServer("things")
    server.add_tool(add, name="number_add")
    server.add_tool(whoami, name="process_show")
    server.add_tool(key, name="key_show")
    server.add_tool(words, name="word_list", structured_output=False)
    server.add_tool(picture, name="picture_get", structured_output=False)
    server.add_tool(huge, name="text_huge", structured_output=False)
    server.add_tool(lie, name="thing_lie")
    server.add_tool(fail, name="thing_fail")
    server.add_tool(refuse, name="thing_refuse")
    server.add_tool(die, name="process_die")
    server.add_tool(hang, name="thing_hang")
    server.add_tool(variable, name="variable_show")
    server.add_tool(chatter, name="text_print")
    return server


def add(left: int, right: int = 1) -> dict[str, int]:
    return {"total": left + right}


async def whoami() -> dict[str, int]:
    return {"pid": os.getpid()}


async def key(context: Context[Any, Any]) -> dict[str, Any]:
    meta: Any = context.request_context.meta or {}
    return {"key": meta.get("parley/idempotency_key")}


async def words() -> CallToolResult:
    return CallToolResult(content=[TextContent(text="one"), TextContent(text="two")])


async def picture() -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text="a dot"), ImageContent(data="aGk=", mime_type="image/png")]
    )


async def huge(size: int) -> str:
    return "x" * size


async def lie() -> dict[str, Any]:
    return {"count": "many"}


async def fail() -> dict[str, Any]:
    raise RuntimeError("secret detail")


async def refuse() -> CallToolResult:
    return CallToolResult(content=[], structured_content={"category": "not_found"}, is_error=True)


async def die() -> dict[str, Any]:
    os._exit(3)


async def hang(marker: str) -> dict[str, Any]:
    """Blocks the whole server, deaf to cancellation."""
    Path(marker).write_text("here", encoding="utf-8")  # noqa: ASYNC240 - it means to block
    NEVER.wait()
    return {}


async def variable(name: str) -> dict[str, Any]:
    return {"value": os.environ.get(name)}


async def chatter() -> dict[str, Any]:
    os.write(1, b"hello from a server that prints\n")
    return {"ok": True}


if __name__ == "__main__":
    if "--slow-end" in sys.argv:
        threading.Thread(target=lambda: time.sleep(3600)).start()  # it does not end by itself
    make_server().run("stdio")
