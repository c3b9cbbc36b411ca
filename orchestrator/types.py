"""Identifiers and JSON: the words that every layer shares. No behaviour lives here."""

from secrets import token_hex
from typing import Any, NewType, TypeAlias

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
    """A fresh identifier such as ``turn_3f2a…``: the prefix tells a reader what it names."""
    return f"{prefix}_{token_hex(16)}"
