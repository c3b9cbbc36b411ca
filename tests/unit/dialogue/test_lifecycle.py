"""The transition table, its restrictions, and its diagram in the documentation."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from orchestrator.dialogue.lifecycle import (
    PLANNED,
    TRANSITIONS,
    FlowState,
    FlowStatus,
    Reason,
    check_transition,
)
from orchestrator.errors import IllegalTransition
from tests.cases import for_each

DOCUMENT = Path(__file__).parents[3] / "docs" / "lifecycle.md"


def draw_transitions() -> str:
    """Return the table as a Mermaid state diagram."""
    names = {status: (status.reason or status.state).value for status in TRANSITIONS}
    lines = ["stateDiagram-v2", "    [*] --> Active", f"    [*] --> {names[PLANNED]}"]
    for state in (FlowState.PENDING, FlowState.INVALID):
        inner = [names[status] for status in TRANSITIONS if status.state is state]
        lines += [f"    state {state.value} {{", *(f"        {name}" for name in inner), "    }"]
    for before, allowed in TRANSITIONS.items():
        lines += [f"    {names[before]} --> {names[after]}" for after in TRANSITIONS if after in allowed]
        lines += [] if allowed else [f"    {names[before]} --> [*]"]
    return "\n".join(lines)


def test_every_status_is_in_the_table() -> None:
    reasons = {status.reason for status in TRANSITIONS} - {None}
    assert reasons == set(Reason)
    assert {status.state for status in TRANSITIONS} == set(FlowState)
    assert all(after in TRANSITIONS for allowed in TRANSITIONS.values() for after in allowed)


def test_pending_and_invalid_always_have_a_reason() -> None:
    for status in TRANSITIONS:
        needs_reason = status.state in {FlowState.PENDING, FlowState.INVALID}
        assert (status.reason is not None) is needs_reason


def test_what_has_ended_stays_ended() -> None:
    for status, allowed in TRANSITIONS.items():
        assert (not allowed) is (status.state in {FlowState.COMPLETED, FlowState.INVALID})


@for_each(("before", "after"), list(product(TRANSITIONS, repeat=2)), ids=str)
def test_only_what_the_table_allows_passes(before: FlowStatus, after: FlowStatus) -> None:
    if after in TRANSITIONS[before]:
        check_transition(before, after)
    else:
        with pytest.raises(
            IllegalTransition, match=f"^A flow cannot change from {re.escape(str(before))} to "
        ):
            check_transition(before, after)


def test_the_document_shows_the_table() -> None:
    text = DOCUMENT.read_text()
    assert f"```mermaid\n{draw_transitions()}\n```" in text
    assert all(f"`{reason.value}`" in text for reason in Reason)
