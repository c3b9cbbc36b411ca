"""Schemas in the strict form that OpenAI enforces: every property required, nothing else allowed."""

from typing import cast

from orchestrator.types import Json, JsonObject


def is_strict(schema: Json) -> bool:
    """Return whether every object in a schema lists and requires all its properties."""
    if isinstance(schema, list):
        return all(is_strict(one) for one in cast("list[Json]", schema))
    if not isinstance(schema, dict):
        return True
    schema = cast("JsonObject", schema)
    if schema.get("type") == "object" or "properties" in schema:
        properties: JsonObject = schema.get("properties") or {}
        if (
            schema.get("additionalProperties") is not False
            or {*schema.get("required", ())} != properties.keys()
        ):
            return False
        return all(is_strict(one) for one in properties.values())
    return all(is_strict(schema[key]) for key in ("items", "anyOf", "oneOf") if key in schema)


def make_strict(schema: JsonObject) -> JsonObject:
    """Return a schema whose optional properties are required and nullable.

    Objects with arbitrary keys have no strict form and stay unchanged, so `is_strict` is false for them.
    """
    changed = dict(schema)
    if "items" in schema and isinstance(schema["items"], dict):
        changed["items"] = make_strict(cast("JsonObject", schema["items"]))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            changed[key] = [make_strict(one) for one in schema[key]]
    properties: JsonObject | None = schema.get("properties")
    if properties and schema.get("additionalProperties", False) is False:
        required = {*schema.get("required", ())}
        changed["properties"] = {
            name: make_strict(one) if name in required else _or_null(make_strict(one))
            for name, one in properties.items()
        }
        changed["required"] = list(properties)
        changed["additionalProperties"] = False
    return changed


def _or_null(schema: JsonObject) -> JsonObject:
    kind = schema.get("type")
    if "enum" in schema or kind is None:
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = cast("list[Json]", kind) if isinstance(kind, list) else [kind]
    return schema if "null" in kinds else schema | {"type": [*kinds, "null"]}


def drop_nulls(value: Json, schema: Json) -> Json:
    """Return an answer without the nulls that only the strict schema required."""
    if isinstance(value, list):
        items = _of(schema, "items")
        return [drop_nulls(one, items) for one in cast("list[Json]", value)]
    if not isinstance(value, dict):
        return value
    properties, required = _of(schema, "properties"), _of(schema, "required") or ()
    return {
        name: drop_nulls(one, _of(properties, name))
        for name, one in cast("JsonObject", value).items()
        if one is not None or name in required or name not in (properties or {})
    }


def _of(schema: Json, key: str) -> Json:
    return cast("JsonObject", schema).get(key) if isinstance(schema, dict) else None
