"""ID and JSON types that all layers share, and functions for JSON values and URL-safe text."""

import base64
import re
from collections.abc import Collection, Iterator
from hashlib import blake2b
from secrets import token_hex
from typing import Any, NewType, TypeAlias, TypeGuard

import orjson

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, or a list or dict of JSON values."""

JsonObject: TypeAlias = dict[str, Any]

TenantId = NewType("TenantId", str)
UserId = NewType("UserId", str)
SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
FlowId = NewType("FlowId", str)
WorkerId = NewType("WorkerId", int)
Dact = NewType("Dact", str)
"""The name of a flow type, for example ``book_flight``."""
ToolId = NewType("ToolId", str)
"""The name of a tool in the manifest, in the form ``entity_verb``."""
Epoch = NewType("Epoch", int)
"""The version of a session, which each commit of its state increments."""

DEFAULT_TENANT = TenantId("default")


def new_flow_id() -> FlowId:
    return FlowId(new_id("flow"))


def new_id(prefix: str) -> str:
    """Return a random ID such as ``turn_3f2a…``. The prefix indicates the type."""
    return f"{prefix}_{token_hex(16)}"


def as_json(record: object, *, without: Collection[str] = ()) -> JsonObject:
    """Return a dataclass's fields as JSON, except the fields in `without`. Times are in ISO 8601."""
    written: JsonObject = orjson.loads(orjson.dumps(record))
    return {name: value for name, value in written.items() if name not in without}


def is_object(value: Json) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def are_rows(value: Json) -> TypeGuard[list[JsonObject]]:
    """Return whether a value is a list of objects, possibly empty."""
    return is_list(value) and all(issubclass(kind, dict) for kind in set(map(type, value)))


def texts_in(value: Json) -> Iterator[str]:
    """Yield all strings in a JSON value, except names of members."""
    if isinstance(value, str):
        yield value
    elif is_object(value) or is_list(value):
        for part in value.values() if is_object(value) else value:
            yield from texts_in(part)


_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""A NUL escape in JSON, after an even number of backslashes."""


def holds_nul(written: bytes) -> bool:
    """Return whether serialized JSON contains a NUL character, which databases can't store."""
    return b"\\u0000" in written and _NUL.search(written.decode()) is not None


def drop_nul(written: str) -> str:
    """Remove NUL characters from serialized JSON or plain text."""
    return _NUL.sub(r"\1", written.replace("\0", ""))


def hash_json(value: Json, size: int = 16) -> str:
    """Return a hexadecimal digest of `size` bytes that doesn't depend on key order."""
    return blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=size).hexdigest()


def copy_json(value: Json) -> Json:
    return orjson.loads(orjson.dumps(value)) if isinstance(value, dict | list) else value


def same_value(left: Json, right: Json) -> bool:
    """Return whether two JSON values are equal. 1 equals 1.0, but not true."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def encode_base64url(data: bytes) -> str:
    """Return URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_base64url(text: str) -> bytes:
    """Decode URL-safe base64 without padding. Raises ValueError if the text is malformed."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
