"""Parts of JSON Schemas that bound what a model may answer.

All objects are closed and all members required, which strict modes ask for. Texts and lists have limits, so
an endpoint that enforces the schema cannot run on.
"""

from collections.abc import Collection, Iterable

from orchestrator.types import Json, JsonObject, is_list, is_object


def closed(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def opened(schema: Json) -> Json:
    """Return a schema whose objects can have more members: endpoints that enforce nothing add some."""
    if is_list(schema):
        return [opened(one) for one in schema]
    if not is_object(schema):
        return schema
    return {name: opened(one) for name, one in schema.items() if name != "additionalProperties"}


def one_of(names: Iterable[str]) -> JsonObject:
    return {"type": "string", "enum": list(names)}


def one_of_or_null(names: Collection[str]) -> JsonObject:
    return {"type": ["string", "null"], "enum": [*names, None]}


def bounded_text(longest: int) -> JsonObject:
    """Return the schema of a text. `longest`: characters."""
    return {"type": "string", "maxLength": longest}


def list_of(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "maxItems": most, "items": items}
