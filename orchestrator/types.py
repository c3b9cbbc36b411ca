"""Identifiers and JSON: the words that every layer shares. JSON is told apart, copied and compared here."""

import re
from hashlib import blake2b
from secrets import token_hex
from typing import Any, NewType, TypeAlias, TypeGuard

import orjson

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list or dict of the same."""

JsonObject: TypeAlias = dict[str, Any]

TenantId = NewType("TenantId", str)
UserId = NewType("UserId", str)
SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
FlowId = NewType("FlowId", str)
WorkerId = NewType("WorkerId", int)
Dact = NewType("Dact", str)
"""A flow type's name, for example ``book_flight``."""
ToolId = NewType("ToolId", str)
"""A tool's name in the manifest, ``entity_verb``."""
Epoch = NewType("Epoch", int)
"""A session's version; every commit of its state advances it by one."""

DEFAULT_TENANT = TenantId("default")


def new_flow_id() -> FlowId:
    return FlowId(new_id("flow"))


def new_id(prefix: str) -> str:
    """Make a fresh identifier such as ``turn_3f2a…``: the prefix tells a reader what it names."""
    return f"{prefix}_{token_hex(16)}"


def is_object(value: Json) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    return isinstance(value, list)


def are_rows(value: Json) -> TypeGuard[list[JsonObject]]:
    """Say whether it is a list of objects, or an empty one."""
    return is_list(value) and all(issubclass(kind, dict) for kind in set(map(type, value)))


_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")
"""As JSON is written, behind any number of escaped backslashes."""


def holds_nul(written: bytes) -> bool:
    """Say whether a text of some written JSON has a NUL character, which databases do not store."""
    return b"\\u0000" in written and _NUL.search(written.decode()) is not None


def drop_nul(written: str) -> str:
    """Take the NUL characters out of written JSON, or out of a plain text."""
    return _NUL.sub(r"\1", written.replace("\0", ""))


def hash_json(value: Json, size: int = 16) -> str:
    """Make a digest of `size` bytes, in hexadecimal; the order of an object's keys does not count."""
    return blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=size).hexdigest()


def copy_json(value: Json) -> Json:
    """Copy a value so that neither side sees the other's changes."""
    return orjson.loads(orjson.dumps(value)) if isinstance(value, dict | list) else value


def same_value(left: Json, right: Json) -> bool:
    """Compare as answers: 1 and true differ, 1 and 1.0 do not."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)
