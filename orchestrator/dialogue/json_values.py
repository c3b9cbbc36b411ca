"""JSON values: telling their kinds apart, copying, comparing. Nothing here knows dialogue."""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TypeGuard

import orjson

from orchestrator.types import Json, JsonObject


def is_object(value: Json) -> TypeGuard[JsonObject]:
    """True for a JSON object."""
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    """True for a JSON array."""
    return isinstance(value, list)


_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""As JSON is written, behind any number of escaped backslashes."""


def holds_nul(written: bytes) -> bool:
    """Whether a text of some written JSON has a NUL character, which databases do not store."""
    return b"\\u0000" in written and _NUL.search(written.decode()) is not None


def drop_nul(written: str) -> str:
    """Written JSON, or a plain text, without its NUL characters."""
    return _NUL.sub(r"\1", written.replace("\0", ""))


def hash_json(value: Json, size: int = 16) -> str:
    """A digest of `size` bytes, in hexadecimal; the order of an object's keys does not count."""
    return blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=size).hexdigest()


def copy_json(value: Json) -> Json:
    """A copy that shares no container with `value`, so that neither side sees the other's changes."""
    return orjson.loads(orjson.dumps(value)) if is_object(value) or is_list(value) else value


def same_value(left: Json, right: Json) -> bool:
    """Equal as an answer: 1 and true differ, 1 and 1.0 do not."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)
