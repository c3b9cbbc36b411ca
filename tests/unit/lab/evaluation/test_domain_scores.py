"""Metrics of a measured domain, from fixed turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from lab.evaluation.conversations import Outcome, TurnOutcome, find_faults
from lab.evaluation.runs import find_shortfalls, read_bounds
from lab.evaluation.scores import Scores, measure
from orchestrator.domain.evaluations import ExpectEntry
from orchestrator.errors import InvalidInput


def outcome(*turns: tuple[dict[str, Any], dict[str, Any]]) -> Outcome:
    """Return a conversation, given the expected and the actual turns."""
    nothing = {
        "kind": None,
        "flow": None,
        "flows": [],
        "completed": [],
        "tools": [],
        "arguments": [],
        "ambiguity": "none",
        "slots": {},
        "answer": "",
        "broken": [],
        "status": "done",
    }
    taken = list[TurnOutcome]()
    for expected, came in turns:
        expect, observed = ExpectEntry(**expected), {**nothing, **came}
        taken.append(TurnOutcome("", expect, observed, list(find_faults(expect, observed))))
    return Outcome("file", "conversation", taken)


def figures(*outcomes: Outcome, edges: dict[str, Sequence[str]] | None = None) -> Scores:
    return measure(outcomes, edges or {})


def test_flows_that_are_confused_are_counted_and_known_as_neighbours() -> None:
    right = ({"flow": "book"}, {"flow": "book"})
    near = ({"flow": "book"}, {"flow": "search"})
    far = ({"completed": ["search"]}, {"completed": ["cancel"]})

    scores = figures(outcome(right, near, far), edges={"search": ["book"]})

    assert scores.figures["flow_accuracy"] == pytest.approx(1 / 3)
    assert scores.confusion == {("book", "book"): 1, ("book", "search"): 1, ("search", "cancel"): 1}
    assert scores.neighbors == [("book", "search")]


def test_slots_are_measured_as_far_as_they_are_expected() -> None:
    wanted = {"slots": {"origin": "OSL", "destination": "MAD", "day": None}}
    found = {"slots": {"origin": "OSL", "destination": "BCN", "passengers": 2}}

    scores = figures(outcome((wanted, found))).figures

    assert (scores["slot_precision"], scores["slot_recall"], scores["slot_f1"]) == (0.5, 0.5, 0.5)
    assert scores["joint_goal"] == 0.0


def test_a_workflow_is_full_if_every_turn_is_as_expected() -> None:
    wanted = {"tools": ["a", "b"]}

    assert figures(outcome((wanted, wanted))).figures["full_workflow"] == 1.0
    assert figures(outcome((wanted, wanted), (wanted, {"tools": ["b"]}))).figures["full_workflow"] == 0.0


def test_arguments_of_tools_are_held_to_those_that_matter() -> None:
    wanted = {"arguments": {"search": {"day": "2026-11-21"}}}
    right = {"arguments": [{"search": {"day": "2026-11-21", "cabin": "economy"}}]}
    wrong = {"arguments": [{"search": {"day": "2026-11-22"}}]}

    scores = figures(outcome((wanted, right), (wanted, wrong))).figures

    assert scores["tool_arguments"] == 0.5


def test_what_nothing_was_expected_for_has_no_figure() -> None:
    scores = figures(outcome(({}, {}))).figures

    assert {name for name, value in scores.items() if value is not None} == {
        "turns_as_expected",
        "full_workflow",
    }
    assert list(find_shortfalls(scores, {"slot_f1": 0.9})) == []


def test_bounds_are_of_turns_unless_they_name_a_figure() -> None:
    assert read_bounds(["0.95", "slot_f1=0.9"]) == {"turns_as_expected": 0.95, "slot_f1": 0.9}
    with pytest.raises(InvalidInput, match="not a valid minimum score"):
        read_bounds(["slot_f1="])
