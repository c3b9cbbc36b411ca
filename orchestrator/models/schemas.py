"""Parts of JSON Schemas that bound what a model may answer.

All objects are closed and all members required, which strict modes ask for. Texts and lists have limits, so
an endpoint that enforces the schema cannot run on.
"""

from collections.abc import Collection, Iterable

from orchestrator.types import JsonObject


def closed(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def one_of(names: Iterable[str]) -> JsonObject:
    return {"type": "string", "enum": list(names)}


def one_of_or_null(names: Collection[str]) -> JsonObject:
    return {"type": ["string", "null"], "enum": [*names, None]}


def bounded_text(longest: int) -> JsonObject:
    """Return the schema of a text. `longest`: characters."""
    return {"type": "string", "maxLength": longest}


def list_of(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "maxItems": most, "items": items}
