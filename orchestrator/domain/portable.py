"""Simplified copies of JSON Schemas that every model provider accepts (CO-2).

A model receives the copy from `simplify`. Its arguments are validated against the original schema.
"""

from collections.abc import Iterator, Mapping
from typing import cast

from orchestrator.types import Json, JsonObject, is_list, is_object

REFUSED_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "enum", "not", "if", "$ref")
"""Keywords that OpenAI or Anthropic reject at the top level of a tool's parameters."""

_KEPT = frozenset(
    {
        "type",
        "description",
        "enum",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "pattern",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    }
)
_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
)
_DEEPEST = 12
"""Maximum nesting of a copy. It ends recursive schemas."""


def find_refused(schema: JsonObject) -> list[str]:
    """Return the schema's top-level keywords that make providers reject a tool."""
    return [keyword for keyword in REFUSED_AT_THE_TOP if keyword in schema]


def simplify(schema: JsonObject) -> JsonObject:
    """Return a copy with plain keywords only, resolved references, and a type for each enum.

    Keywords that some providers reject are omitted, so the copy accepts all values that the schema accepts.
    """
    definitions = {
        f"#/{place}/{name}": body
        for place in ("$defs", "definitions")
        for name, body in _members(schema.get(place))
        if is_object(body)
    }
    copy = _simplify(schema, definitions, 0)
    copy.pop("anyOf", None)
    copy.pop("enum", None)
    return {**copy, "type": "object", "properties": copy.get("properties", {})}


def _simplify(schema: JsonObject, definitions: Mapping[str, JsonObject], depth: int) -> JsonObject:
    if depth > _DEEPEST:
        return {}
    merged = _merge(schema, definitions, depth)
    copy: JsonObject = {keyword: body for keyword, body in merged.items() if keyword in _KEPT}
    if "const" in merged:
        copy["enum"] = [merged["const"]]
    alternatives = merged.get("anyOf", merged.get("oneOf"))
    if is_list(alternatives):
        copy["anyOf"] = [_inner(one, definitions, depth) for one in alternatives]
    if is_object(copy.get("properties")):
        copy["properties"] = {
            name: _inner(body, definitions, depth) for name, body in _members(copy["properties"])
        }
    for keyword in ("items", "additionalProperties"):
        if is_object(copy.get(keyword)):
            copy[keyword] = _inner(copy[keyword], definitions, depth)
    if "type" not in copy and is_list(copy.get("enum")):
        copy["type"] = _type_of(copy["enum"])
    if is_list(copy.get("type")):
        copy = _split(copy)
    description = _describe(merged)
    return {**copy, "description": description} if description else copy


def _split(schema: JsonObject) -> JsonObject:
    """Replace a list of types with single-type alternatives, because some providers don't support type lists."""
    kinds: list[str] = schema["type"]
    rest = {keyword: body for keyword, body in schema.items() if keyword not in {"type", "description"}}
    values = cast("list[Json]", rest.pop("enum", []))
    alternatives: list[JsonObject] = []
    for kind in kinds:
        own = [value for value in values if _type_of([value]) == kind]
        bounds = {} if kind == "null" else rest
        alternatives.append({"type": kind, **bounds, **({"enum": own} if own and kind != "null" else {})})
    return {"anyOf": alternatives}


def _inner(schema: Json, definitions: Mapping[str, JsonObject], depth: int) -> JsonObject:
    return _simplify(schema, definitions, depth + 1) if is_object(schema) else {}


def _merge(schema: JsonObject, definitions: Mapping[str, JsonObject], depth: int) -> JsonObject:
    """Return the schema with references and `allOf` parts merged into it."""
    parts: list[JsonObject] = []
    target = definitions.get(str(schema.get("$ref")))
    if target is not None and depth < _DEEPEST:
        parts.append(_merge(target, definitions, depth + 1))
    for_all = cast("list[Json]", schema.get("allOf") or []) if depth < _DEEPEST else []
    parts.extend(_merge(part, definitions, depth + 1) for part in for_all if is_object(part))
    merged: JsonObject = {}
    for part in (*parts, schema):
        for keyword, body in part.items():
            merged[keyword] = _join(keyword, merged.get(keyword), body)
    return merged


def _join(keyword: str, one: Json, other: Json) -> Json:
    if keyword == "properties" and is_object(one) and is_object(other):
        return {**one, **other}
    if keyword == "required" and is_list(one) and is_list(other):
        return [*one, *(name for name in other if name not in one)]
    return other


def _type_of(values: list[Json]) -> Json:
    names = dict.fromkeys(name for value in values for kind, name in _TYPES if type(value) is kind)
    return next(iter(names)) if len(names) == 1 else list(names)


def _describe(schema: JsonObject) -> str:
    """Return the description with the format appended, because some providers reject the keyword `format`."""
    words = str(schema.get("description") or schema.get("title") or "")
    named = schema.get("format")
    return f"{words} (format: {named})".strip() if isinstance(named, str) else words


def _members(body: Json) -> Iterator[tuple[str, Json]]:
    return iter(body.items()) if is_object(body) else iter(())
