"""Differences between two JSON objects, small enough to keep one per turn (ST-2). Pure.

A diff has up to four parts: ``set`` (key to new value), ``unset`` (removed keys), ``in`` (key to the diff
of two objects) and ``tail`` (key to what a list gained at its end). An empty diff changes nothing.
"""

from __future__ import annotations

from orchestrator.types import Json, JsonObject


def diff(before: JsonObject, after: JsonObject) -> JsonObject:
    """What leads from `before` to `after`: ``apply(before, diff(before, after)) == after``."""
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
        inner = diff(before, after)
        return ("in", inner) if inner else (None, None)
    if isinstance(before, list) and isinstance(after, list):
        if _equal(before, after):
            return None, None
        if before and len(after) > len(before) and _equal(before, after[: len(before)]):
            return "tail", after[len(before) :]
        return "set", after
    return (None, None) if _equal(before, after) else ("set", after)


def _equal(one: Json, other: Json) -> bool:
    """Equality of JSON, where true is not 1 and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return one == other
