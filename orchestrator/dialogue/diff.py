"""Differences between two JSON objects, small enough to keep one per turn (ST-2). Pure.

A diff has up to four parts: ``set`` (key to new value), ``unset`` (removed keys), ``in`` (key to the diff
of two objects) and ``tail`` (key to what a list gained at its end). An empty diff changes nothing.
"""

from __future__ import annotations

from typing import cast

from orchestrator.types import Json, JsonObject


def diff(before: JsonObject, after: JsonObject) -> JsonObject:
    """What leads from the object `before` to `after`; `apply` is its inverse."""
    changed: JsonObject = {}
    for key, value in after.items():
        if key not in before:
            changed.setdefault("set", {})[key] = value
            continue
        part, difference = _compare(before[key], value)
        if part is not None:
            changed.setdefault(part, {})[key] = difference
    unset = [key for key in before if key not in after]
    if unset:
        changed["unset"] = unset
    return changed


def apply(before: JsonObject, difference: JsonObject) -> JsonObject:
    """The object after the difference; `before` is left as it was and shares what did not change."""
    after = {**before, **difference.get("set", {})}
    for key in difference.get("unset", ()):
        del after[key]
    for key, inner in difference.get("in", {}).items():
        after[key] = apply(before[key], inner)
    for key, gained in difference.get("tail", {}).items():
        after[key] = [*before[key], *gained]
    return after


def _compare(before: Json, after: Json) -> tuple[str | None, Json]:
    """The part of a diff that one changed value belongs to, and its content; None when equal."""
    if isinstance(before, dict) and isinstance(after, dict):
        inner = diff(cast("JsonObject", before), cast("JsonObject", after))
        return ("in", inner) if inner else (None, None)
    if isinstance(before, list) and isinstance(after, list):
        return _compare_lists(cast("list[Json]", before), cast("list[Json]", after))
    return (None, None) if equal(before, after) else ("set", after)


def _compare_lists(before: list[Json], after: list[Json]) -> tuple[str | None, Json]:
    if equal(before, after):
        return None, None
    if before and len(after) > len(before) and equal(before, after[: len(before)]):
        return "tail", after[len(before) :]
    return "set", after


def equal(one: Json, other: Json) -> bool:
    """Equality of JSON, where true is not 1 while 1 is 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("JsonObject", one), cast("JsonObject", other)
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        first, second = cast("list[Json]", one), cast("list[Json]", other)
        return len(first) == len(second) and all(map(equal, first, second))
    return isinstance(one, bool) == isinstance(other, bool) and one == other
