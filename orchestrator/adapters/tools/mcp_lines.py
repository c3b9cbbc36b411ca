"""A text encoding that limits the lines of a local MCP server.

The `mcp` library reads a line of any length into memory. The encoding's name is its only hook before that.
"""

from __future__ import annotations

import codecs
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson
from pydantic_core import from_json

from orchestrator.types import JsonObject, is_object

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

TOO_LONG: Final = -32099
"""The JSON-RPC error code that replaces an overlong line."""

_NAME: Final = "mcp_lines_"


def limited_encoding(max_bytes: int) -> str:
    """Return the name of an encoding: UTF-8, with an error response instead of each line above `max_bytes`."""
    return f"{_NAME}{max_bytes}"


class LineDecoder(codecs.IncrementalDecoder):
    def __init__(self, max_bytes: int, errors: str = "strict") -> None:
        super().__init__(errors)
        self._max_bytes = max_bytes
        self._begun = b""
        self._skips = False

    def decode(self, input: ReadableBuffer, final: bool = False) -> str:  # noqa: A002 - the base class's name
        """Decode whole lines. Replace an overlong line as soon as it is too long, and skip the rest of it."""
        *ended, begun = (self._begun + bytes(input)).split(b"\n")
        if ended and self._skips:
            ended, self._skips = ended[1:], False
        if self._skips:
            begun = b""
        elif len(begun) > self._max_bytes:
            ended, begun, self._skips = [*ended, begun], b"", True
        self._begun = begun
        return "".join(map(self._read, ended))

    def _read(self, line: bytes) -> str:
        whole = line if len(line) <= self._max_bytes else refuse(line)
        return f"{whole.decode('utf-8', self.errors)}\n"


def refuse(line: bytes) -> bytes:
    """Return an error response for the request that the start of a response identifies, or for none (ID null)."""
    try:
        begun = from_json(line, allow_partial=True)
    except ValueError:
        begun = None
    members: JsonObject = begun if is_object(begun) and "method" not in begun else {}
    request_id = members["id"] if "id" in list(members)[:-1] else None  # the last member may be incomplete
    error = {"code": TOO_LONG, "message": "The response is too long."}
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "error": error})


def _find(name: str) -> codecs.CodecInfo | None:
    max_bytes = name.removeprefix(_NAME)
    if max_bytes == name or not max_bytes.isdecimal():
        return None
    return codecs.CodecInfo(
        codecs.utf_8_encode,
        codecs.utf_8_decode,
        incrementaldecoder=partial(LineDecoder, int(max_bytes)),
        name=name,
    )


codecs.register(_find)
