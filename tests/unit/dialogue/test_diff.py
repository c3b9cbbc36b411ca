"""ST-2: diffs are exact for any JSON, small for usual changes, and rebuild every earlier state."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.dialogue.storage.serialization import apply, diff, same
from tests.cases import for_each
from tests.json_documents import edited, objects, values


def exactly(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


EXAMPLES = settings(max_examples=40)


@EXAMPLES
@given(before=objects, after=objects)
def test_applying_a_difference_gives_the_other_document(before: Any, after: Any) -> None:
    texts = exactly(before), exactly(after)
    patch = json.loads(json.dumps(diff(before, after)))
    assert exactly(apply(before, patch)) == texts[1]
    assert (exactly(before), exactly(after)) == texts


@EXAMPLES
@given(data=st.data(), before=st.dictionaries(st.just("a"), st.lists(values, max_size=6), min_size=1))
def test_small_changes_of_lists_are_exact(data: st.DataObject, before: Any) -> None:
    after = {"a": data.draw(edited(before["a"]))}
    patch = json.loads(json.dumps(diff(before, after)))
    assert exactly(apply(before, patch)) == exactly(after)


@for_each(
    ("left", "right"),
    [
        (1, True),
        (0, False),
        (1, 1.0),
        (0.0, -0.0),
        (None, False),
        ("", None),
        ([], {}),
        ([1], [True]),
        ([{"a": 1}], [{"a": True}]),
    ],
)
def test_values_that_only_look_equal_are_told_apart(left: Any, right: Any) -> None:
    assert not same(left, right)
    assert same(left, left)
    after = apply({"a": left}, diff({"a": left}, {"a": right}))["a"]
    assert exactly(after) == exactly(right)


@for_each(
    ("before", "after", "patch"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, {"-": ["b"]}),
        ({"a": 1}, {"a": None}, {"=": {"a": None}}),
        (
            {"a": {"b": {"c": 1, "d": 2}}},
            {"a": {"b": {"c": 5, "d": 2}}},
            {"~": {"a": {"~": {"b": {"=": {"c": 5}}}}}},
        ),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}, {"~": {"a": {"+": [3]}}}),
        ({"a": [1, 2, 3]}, {"a": [2, 3, 4, 5]}, {"~": {"a": {"<": 1, "+": [4, 5]}}}),
        (
            {"a": [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 4, "y": 5}]},
            {"a": [{"x": 2}, {"x": 3}, {"x": 4}, {"x": 6}]},
            {"~": {"a": {"<": 1, "~": [[2, {"-": ["y"]}]], "+": [{"x": 6}]}}},
        ),
        ({"a": [1, 2, 3]}, {"a": [1, 3]}, {"~": {"a": {"|": 2, "=": [[1, 3]]}}}),
        ({"a": [1, 2]}, {"a": [1, 9, 2]}, {"~": {"a": {"=": [[1, 9]], "+": [2]}}}),
        ({"a": [1, 2]}, {"a": [8, 9]}, {"=": {"a": [8, 9]}}),
        ({"a": [1]}, {"a": []}, {"=": {"a": []}}),
        (
            {"a": [{"x": 1, "y": 2}, {"x": 3}]},
            {"a": [{"x": 1, "y": 5}]},
            {"~": {"a": {"|": 1, "~": [[0, {"=": {"y": 5}}]]}}},
        ),
    ],
)
def test_differences_are_small(before: Any, after: Any, patch: Any) -> None:
    assert diff(before, after) == patch
    assert apply(before, patch) == after


def test_a_sliding_window_costs_only_what_is_new() -> None:
    before = {"messages": [{"role": "user", "text": f"line {n}"} for n in range(50)]}
    after = {
        "messages": [*before["messages"][2:], {"role": "user", "text": "a"}, {"role": "agent", "text": "b"}]
    }
    assert len(json.dumps(diff(before, after))) < 150
