"""Compares a tool's inputs in the manifest with those of its MCP server, and reads its answer as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from mcp_types import CallToolResult, ContentBlock, TextContent

from orchestrator.types import Json, JsonObject, is_object


def find_incompatibility(ours: JsonObject, theirs: JsonObject) -> str | None:
    """Why calls that fit our input schema would not fit theirs, or None.

    Looks at names, at what is required and at plain types; the server checks the rest of each call.
    """
    our_names: JsonObject = ours.get("properties", {})
    their_names: JsonObject = theirs.get("properties", {})
    required = set(ours.get("required", ()))
    for name in theirs.get("required", ()):
        if name not in required:
            return f"the server requires {name!r}, and the manifest does not"
    for name, schema in our_names.items():
        if name not in their_names:
            if theirs.get("additionalProperties") is False or their_names:
                return f"the server takes no {name!r}"
            continue
        if not _types_meet(schema, their_names[name]):
            return f"{name!r} is {schema['type']} here and {their_names[name]['type']} at the server"
    return None


def _types_meet(ours: Json, theirs: Json) -> bool:
    if not (is_object(ours) and is_object(theirs) and "type" in ours and "type" in theirs):
        return True
    left, right = _types(ours["type"]), _types(theirs["type"])
    return left <= right | ({"integer"} if "number" in right else set())


def _types(value: Json) -> set[str]:
    return {value} if isinstance(value, str) else set(value)


def read_result(result: CallToolResult) -> Json:
    """The structured content; else the object that a sole text is; else texts and other blocks."""
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
