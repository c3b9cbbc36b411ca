"""Rules of providers: a function for each published rule, with its source.

A rule receives a request's body and returns the reason for refusal, or None. Sources are documentation, or
reports if the documentation is incomplete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Body = Any
Judge = Callable[[Body], str | None]


@dataclass(frozen=True)
class Rule:
    """A rule. `source`: where the rule is published."""

    name: str
    source: str
    judge: Judge


def rule(source: str) -> Callable[[Judge], Rule]:
    """Create a rule from a function, with the function's name."""
    return lambda judge: Rule(judge.__name__, source, judge)


def fields(source: str, known: Iterable[str], words: str) -> Rule:
    """Create a rule that permits only these fields. `words`: the provider's error message."""
    names = frozenset(known)

    def has_known_fields(body: Body) -> str | None:
        unknown = sorted(body.keys() - names)
        return words.format(unknown[0]) if unknown else None

    return Rule("has_known_fields", source, has_known_fields)


def names_in(text: str) -> list[str]:
    return text.split()


def first(reasons: Iterable[str | None]) -> str | None:
    return next((reason for reason in reasons if reason), None)


def schemas_in(schema: Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Yield all schemas within a schema, with their paths. Values of enums don't count."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for key in ("properties", "$defs", "definitions", "patternProperties"):
        inner = schema.get(key)
        for name, body in inner.items() if isinstance(inner, dict) else ():
            yield from schemas_in(body, f"{path}.{name}")
    for key in ("items", "additionalProperties", "not", "if", "then", "else"):
        yield from schemas_in(schema.get(key), f"{path}.{key}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for place, body in enumerate(schema.get(key) or ()):
            yield from schemas_in(body, f"{path}.{key}.{place}")


def refuse_at_the_top(schema: Any, *keywords: str) -> str | None:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "schema must have type 'object'"
    found = [keyword for keyword in keywords if keyword in schema]
    return f"schema must not have {found[0]!r} at the top level" if found else None


def refuse_keywords(schema: Any, *keywords: str) -> str | None:
    for path, inner in schemas_in(schema):
        found = [keyword for keyword in keywords if keyword in inner]
        if found:
            return f"{path}: {found[0]!r} is not permitted"
    return None


def refuse_unstrict(schema: Any) -> str | None:
    """Check the requirements of OpenAI's strict mode for each object."""
    for path, inner in schemas_in(schema):
        if inner.get("type") == "object" or "properties" in inner:
            if inner.get("additionalProperties") is not False:
                return f"{path}: 'additionalProperties' is required to be supplied and to be false"
            if {*inner.get("required", ())} != {*inner.get("properties", {})}:
                return f"{path}: 'required' must include every key in properties"
    return refuse_keywords(
        schema, "allOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "oneOf"
    )


def refuse_name(name: Any, pattern: str) -> str | None:
    fits = isinstance(name, str) and re.fullmatch(pattern, name)
    return None if fits else f"{name!r} does not match {pattern}"
