from secrets import token_hex
from typing import Any, TypeAlias, TypeGuard

JsonObject: TypeAlias = dict[str, Any]


def new_id(prefix: str) -> str:
    """Return a random ID that starts with `prefix`, for example ``turn_3f2a…``."""
    return f"{prefix}_{token_hex(16)}"


def is_object(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict)
