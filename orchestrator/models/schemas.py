"""JSON Schemas for model answers.

Objects require all of their properties and allow no others, as strict modes demand. Texts and lists have
limits, so that answers end if an endpoint enforces the schema.
"""

from collections.abc import Collection, Iterable, Sequence

from orchestrator.types import Json, JsonObject, is_list, is_object


def closed(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def loose(required: Sequence[str], **properties: JsonObject) -> JsonObject:
    """Return the schema of an object for validating answers of endpoints without strict modes."""
    return {"type": "object", "properties": properties, "required": list(required)}


def array(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


def opened(schema: Json) -> Json:
    """Return a copy of the schema that allows additional properties.

    Endpoints without strict modes add such properties.
    """
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
    return {"type": "string", "maxLength": longest}


def list_of(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "maxItems": most, "items": items}
