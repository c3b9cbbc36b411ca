"""Serialization of the dialogue state: records as JSON, outlines, and patches between versions (ST-2).

An object's patch: ``=`` new or replaced values, ``-`` removed keys, ``~`` patches of members. A list's patch:
``<`` elements dropped at the head, ``|`` length kept before the tail, ``=`` and ``~`` by position in the
remaining list, ``+`` the new tail. Inputs are never mutated; results share unchanged parts with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import filterfalse
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter

from orchestrator.types import Json, JsonObject, is_object

Record = TypeVar("Record")
_EXACT = frozenset({str, int, bool, type(None)})
"""Types whose equal values are also identical in JSON, if both values have the same type."""


@cache
def _adapter(kind: type[Record]) -> TypeAdapter[Record]:
    return TypeAdapter(kind)


def dump(record: Any) -> JsonObject:
    """Convert a record to JSON that shares nothing with it."""
    return orjson.loads(orjson.dumps(record))


def load(kind: type[Record], body: Json) -> Record:
    """Create a record from JSON. The record shares nothing with the JSON. Unknown keys are ignored."""
    return _adapter(kind).validate_json(orjson.dumps(body))


@dataclass(frozen=True, slots=True)
class Outline:
    """A summary of a session's state, for maintenance flows.

    Contains the IDs of flows on the stack, and the counts of pending approvals and unsummarized turns.
    """

    flows: list[str]
    approvals: int
    unsummarized: int


def outline_of(state: JsonObject) -> Outline:
    summary: JsonObject = state.get("summary") or {}
    return Outline(
        [flow["flow_id"] for flow in state.get("stack", ())],
        len(state.get("approvals", ())),
        state.get("turn", 0) - summary.get("through_turn", 0),
    )


def same(left: Json, right: Json) -> bool:
    """Return whether two JSON values are identical, ignoring key order. 1, 1.0 and true differ.

    Python's comparison is fast but treats such numbers as equal. If it finds no difference, the serialized
    form decides, except for plain values.
    """
    if left is right:
        return True
    kind = type(left)  # pyright: ignore[reportUnknownVariableType]
    if kind is not type(right) or left != right:
        return False
    if kind in _EXACT or (not left and kind is not float):
        return True
    if kind is dict:
        kinds: list[type] = [*map(type, left.values())]
        if _EXACT.issuperset(kinds) and kinds == [*map(type, map(right.__getitem__, left))]:  # pyright: ignore[reportUnknownArgumentType]
            return True
    return orjson.dumps(left) == orjson.dumps(right) or _sorted(left) == _sorted(right)


def _sorted(value: Json) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def diff(before: JsonObject, after: JsonObject) -> JsonObject:
    """Return the patch from `before` to `after`, which is empty if they are equal."""
    replaced: JsonObject = {}
    nested: JsonObject = {}
    for key, value in after.items():
        if key not in before:
            replaced[key] = value
            continue
        known = before[key]
        if known is value or (known == value and same(known, value)):
            continue
        within = _diff_value(known, value) if isinstance(value, dict | list) else None
        if within is None:
            replaced[key] = value
        elif within:
            nested[key] = within
    removed = [*filterfalse(after.__contains__, before)]
    patch: JsonObject = {}
    if replaced:
        patch["="] = replaced
    if nested:
        patch["~"] = nested
    if removed:
        patch["-"] = removed
    return patch


def _diff_value(before: Json, after: Json) -> JsonObject | None:
    """Return the patch from one container to another, or None if the container must be replaced."""
    kind = type(before)  # pyright: ignore[reportUnknownVariableType]
    if not before or not after or kind is not type(after):
        return None
    if kind is dict:
        return diff(before, after)
    return _diff_list(before, after) if kind is list else None


def _diff_list(before: list[Json], after: list[Json]) -> JsonObject | None:
    """Return a patch that drops the missing head, patches common elements, and appends the rest.

    Return None if more than half of the elements would be replaced.
    """
    if same(before, after[: len(before)]):  # most lists only grow
        return {"+": after[len(before) :]}
    head = next((place for place, old in enumerate(before) if same(old, after[0])), 0)
    kept = before[head:]
    replaced: list[Json] = []
    nested: list[Json] = []
    for place, (old, new) in enumerate(zip(kept, after, strict=False)):
        if same(old, new):
            continue
        patch = _diff_value(old, new)
        if patch is None:
            replaced.append([place, new])
        else:
            nested.append([place, patch])
    if 2 * len(replaced) > len(after):
        return None
    end = head + len(after) if len(after) < len(kept) else 0
    parts: JsonObject = {"<": head, "|": end, "=": replaced, "~": nested, "+": after[len(kept) :]}
    return {sign: part for sign, part in parts.items() if part}


def apply(before: JsonObject, patch: JsonObject) -> JsonObject:
    """Apply a patch from `diff` and return the new document, without changing `before`."""
    if not patch:
        return before
    removed = patch.get("-", ())
    after = {key: value for key, value in before.items() if key not in removed} if removed else dict(before)
    for key, nested in patch.get("~", {}).items():
        after[key] = _apply_value(before[key], nested)
    after.update(patch.get("=", {}))
    return after


def _apply_value(before: Json, patch: JsonObject) -> Json:
    return apply(before, patch) if is_object(before) else _apply_list(before, patch)


def _apply_list(before: list[Json], patch: JsonObject) -> list[Json]:
    after = before[patch.get("<", 0) : patch.get("|", len(before))]
    for place, value in patch.get("=", ()):
        after[place] = value
    for place, nested in patch.get("~", ()):
        after[place] = _apply_value(after[place], nested)
    return after + patch.get("+", [])


def rebuild(snapshot: JsonObject, patches: Iterable[JsonObject]) -> JsonObject:
    state = snapshot
    for patch in patches:
        state = apply(state, patch)
    return state
