"""JSON values: telling their kinds apart, copying, comparing. Nothing here knows dialogue."""

from __future__ import annotations

from typing import TypeGuard

from orchestrator.types import Json, JsonObject


def is_object(value: Json) -> TypeGuard[JsonObject]:
    """True for a JSON object."""
    return isinstance(value, dict)


def is_list(value: Json) -> TypeGuard[list[Json]]:
    """True for a JSON array."""
    return isinstance(value, list)


def copy_json(value: Json) -> Json:
    """A copy that shares no container with `value`, so that neither side sees the other's changes."""
    kind: type[object] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is dict:
        return {key: copy_json(item) for key, item in value.items()}
    if kind is list:
        return [copy_json(item) for item in value]
    return value


def same_value(left: Json, right: Json) -> bool:
    """Equal as an answer: 1 and true differ, 1 and 1.0 do not."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)
