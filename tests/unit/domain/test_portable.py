"""Copies of schemas for models, with only the keywords that every provider accepts."""

from __future__ import annotations

from typing import Any

from orchestrator.domain.portable import find_refused, simplify
from tests.cases import for_each


@for_each("keyword", ["oneOf", "anyOf", "allOf", "not", "enum", "if"])
def test_keywords_that_providers_refuse_at_the_top_are_found(keyword: str) -> None:
    """CO-2"""
    assert find_refused({"type": "object", "properties": {}, keyword: [{}]}) == [keyword]


def of(body: dict[str, Any], **more: Any) -> Any:
    return simplify({"type": "object", "properties": {"value": body}, **more})["properties"]["value"]


@for_each(
    ("body", "copy"),
    [
        ({"type": "string", "x-guardrail": "sql", "x-statements": ["select"]}, {"type": "string"}),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"], "type": "string"}),
        ({"enum": [1, None]}, {"anyOf": [{"type": "integer", "enum": [1]}, {"type": "null"}]}),
        (
            {"type": ["string", "null"], "maxLength": 3},
            {"anyOf": [{"type": "string", "maxLength": 3}, {"type": "null"}]},
        ),
        ({"const": "a"}, {"enum": ["a"], "type": "string"}),
        ({"type": "string", "format": "date"}, {"type": "string", "description": "(format: date)"}),
        (
            {"type": "string", "title": "Day", "examples": ["x"], "default": "y", "$comment": "z"},
            {"type": "string", "description": "Day"},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "number", "x-unit": "m"}]},
            {"anyOf": [{"type": "string"}, {"type": "number"}]},
        ),
        (
            {"type": "object", "allOf": [{"properties": {"a": {"enum": [True]}}, "required": ["a"]}]},
            {"type": "object", "properties": {"a": {"enum": [True], "type": "boolean"}}, "required": ["a"]},
        ),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "string", "contentEncoding": "x"}},
            {"type": "array", "items": {"type": "string"}},
        ),
        (
            {"type": "object", "patternProperties": {"^a": {}}, "propertyNames": {"pattern": "^a"}},
            {"type": "object"},
        ),
    ],
)
def test_what_providers_refuse_is_left_out_of_the_copy(body: dict[str, Any], copy: Any) -> None:
    """CO-2"""
    before = repr(body)
    assert of(body) == copy
    assert repr(body) == before


def test_references_are_resolved_and_one_to_itself_ends() -> None:
    """CO-2"""
    defs = {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}}

    copy = of({"$ref": "#/$defs/node"}, **{"$defs": defs})

    assert copy["properties"]["next"]["type"] == "object"
    assert "$ref" not in repr(copy)


def test_nothing_stays_at_the_top_that_is_refused() -> None:
    """CO-2"""
    copy = simplify({"anyOf": [{"required": ["a"]}], "allOf": [{"properties": {"a": {}}}], "not": {}})
    assert copy == {"type": "object", "properties": {"a": {}}}
    assert find_refused(copy) == []
