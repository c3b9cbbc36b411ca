"""The table of transitions, what it forbids, and that the documentation shows it."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from orchestrator.dialogue.lifecycle import (
    TRANSITIONS,
    FlowState,
    Reason,
    Standing,
    check_transition,
    draw_transitions,
)
from orchestrator.errors import IllegalTransition

DOCUMENT = Path(__file__).parents[3] / "docs" / "lifecycle.md"


def test_every_standing_is_in_the_table() -> None:
    reasons = {standing.reason for standing in TRANSITIONS} - {None}
    assert reasons == set(Reason)
    assert {standing.state for standing in TRANSITIONS} == set(FlowState)
    assert all(after in TRANSITIONS for allowed in TRANSITIONS.values() for after in allowed)


def test_pending_and_invalid_always_have_a_reason() -> None:
    for standing in TRANSITIONS:
        needs_reason = standing.state in {FlowState.PENDING, FlowState.INVALID}
        assert (standing.reason is not None) is needs_reason


def test_what_has_ended_stays_ended() -> None:
    for standing, allowed in TRANSITIONS.items():
        assert (not allowed) is (standing.state in {FlowState.COMPLETED, FlowState.INVALID})


@pytest.mark.parametrize(("before", "after"), list(product(TRANSITIONS, repeat=2)), ids=str)
def test_only_what_the_table_allows_passes(before: Standing, after: Standing) -> None:
    if after in TRANSITIONS[before]:
        check_transition(before, after)
    else:
        with pytest.raises(
            IllegalTransition, match=f"^A flow that is {re.escape(str(before))} cannot become"
        ):
            check_transition(before, after)


def test_the_document_shows_the_table() -> None:
    text = DOCUMENT.read_text()
    assert f"```mermaid\n{draw_transitions()}\n```" in text
    assert all(f"`{reason.value}`" in text for reason in Reason)
