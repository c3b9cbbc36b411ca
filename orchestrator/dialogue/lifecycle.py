from enum import StrEnum
from typing import NamedTuple

from orchestrator.errors import IllegalTransition
from orchestrator.types import JsonObject


class FlowState(StrEnum):
    PENDING = "Pending"
    """On the stack, waiting."""
    ACTIVE = "Active"
    """On top of the stack and running."""
    COMPLETED = "Completed"
    """Done. The Agent then removes the flow from the stack."""
    INVALID = "Invalid"
    """Canceled, failed, abandoned, pruned or mispredicted. The Agent then removes the flow from the stack."""


class Reason(StrEnum):
    PLANNED = "planned"
    INTERRUPTED = "interrupted"
    AWAITING_APPROVAL = "awaiting_approval"
    AWAITING_CONTEXT = "awaiting_context"
    AWAITING_RESULT = "awaiting_result"
    MISPREDICTED = "mispredicted"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    PRUNED = "pruned"
    PLAN_ABANDONED = "plan_abandoned"


class FlowStatus(NamedTuple):
    state: FlowState
    reason: Reason | None = None

    def __str__(self) -> str:
        return f"{self.state} ({self.reason})" if self.reason else str(self.state)

    def serialize(self) -> JsonObject:
        return {"state": self.state.value, "reason": None if self.reason is None else self.reason.value}


PLANNED = FlowStatus(FlowState.PENDING, Reason.PLANNED)
INTERRUPTED = FlowStatus(FlowState.PENDING, Reason.INTERRUPTED)
AWAITING_APPROVAL = FlowStatus(FlowState.PENDING, Reason.AWAITING_APPROVAL)
AWAITING_CONTEXT = FlowStatus(FlowState.PENDING, Reason.AWAITING_CONTEXT)
AWAITING_RESULT = FlowStatus(FlowState.PENDING, Reason.AWAITING_RESULT)
ACTIVE = FlowStatus(FlowState.ACTIVE)
COMPLETED = FlowStatus(FlowState.COMPLETED)
MISPREDICTED = FlowStatus(FlowState.INVALID, Reason.MISPREDICTED)
FAILED = FlowStatus(FlowState.INVALID, Reason.FAILED)
CANCELLED = FlowStatus(FlowState.INVALID, Reason.CANCELLED)
ABANDONED = FlowStatus(FlowState.INVALID, Reason.ABANDONED)
PRUNED = FlowStatus(FlowState.INVALID, Reason.PRUNED)
PLAN_ABANDONED = FlowStatus(FlowState.INVALID, Reason.PLAN_ABANDONED)

ENDED = frozenset({FlowState.COMPLETED, FlowState.INVALID})
"""States of flows that are about to leave the stack."""
PARKED = frozenset({AWAITING_APPROVAL, AWAITING_CONTEXT, AWAITING_RESULT})
"""Statuses that end with an external event, not when the flow reaches the top of the stack."""

_FROM_PENDING = frozenset({ACTIVE, CANCELLED, ABANDONED, PRUNED, PLAN_ABANDONED})

TRANSITIONS: dict[FlowStatus, frozenset[FlowStatus]] = {
    PLANNED: _FROM_PENDING,
    INTERRUPTED: _FROM_PENDING,
    AWAITING_APPROVAL: _FROM_PENDING | {INTERRUPTED, FAILED},
    AWAITING_CONTEXT: _FROM_PENDING | {INTERRUPTED, FAILED},
    AWAITING_RESULT: _FROM_PENDING | {INTERRUPTED, FAILED},
    ACTIVE: PARKED | {INTERRUPTED, PLANNED, COMPLETED, MISPREDICTED, FAILED, CANCELLED, PLAN_ABANDONED},
    COMPLETED: frozenset(),
    MISPREDICTED: frozenset(),
    FAILED: frozenset(),
    CANCELLED: frozenset(),
    ABANDONED: frozenset(),
    PRUNED: frozenset(),
    PLAN_ABANDONED: frozenset(),
}


def check_transition(before: FlowStatus, after: FlowStatus) -> None:
    """Raise IllegalTransition unless `TRANSITIONS` allows the change."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"A flow cannot change from {before} to {after}.")
