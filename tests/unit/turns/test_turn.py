"""A turn's states: the table is complete, and final states are final."""

from __future__ import annotations

import pytest

from orchestrator.errors import IllegalTransition
from orchestrator.turns.turn import (
    FINISHED,
    SAFE_REPLIES,
    TURN_TRANSITIONS,
    TurnStatus,
    require_transition,
    unanswered,
)
from orchestrator.types import Epoch
from tests.cases import for_each


def test_every_status_has_its_row() -> None:
    assert set(TURN_TRANSITIONS) == set(TurnStatus)


def test_only_quarantine_can_be_left_again() -> None:
    """RT-6"""
    assert {status for status in FINISHED if TURN_TRANSITIONS[status]} == {TurnStatus.QUARANTINED}


def test_other_changes_are_refused() -> None:
    require_transition(TurnStatus.RUNNING, TurnStatus.QUARANTINED)
    with pytest.raises(IllegalTransition):
        require_transition(TurnStatus.DONE, TurnStatus.CANCELLED)


@for_each("status", sorted(FINISHED - {TurnStatus.DONE}))
def test_an_ending_without_an_answer_has_a_safe_reply(status: TurnStatus) -> None:
    """RT-6"""
    assert unanswered(Epoch(2), status, str)["reply"] == str(SAFE_REPLIES[status])
