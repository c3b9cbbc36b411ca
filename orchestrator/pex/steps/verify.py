"""Five checks after a flow was carried out (PX-15). What is done stays done: a fault is recorded and flagged."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.dialogue import invariants
from orchestrator.dialogue.lifecycle import FlowState
from orchestrator.pex.execution import Execution
from orchestrator.pex.steps.results import FRAMED

STRUCTURE = tuple(check for check in invariants.CHECKS if check is not invariants.check_duplicates)
"""What a stack must be, but for the one thing that has a check of its own."""


def verify(run: Execution) -> list[str]:
    """Run the checks; gives the names of those that did not hold."""
    faults: list[str] = []
    for name, find_fault in CHECKS:
        fault = find_fault(run)
        if fault is not None:
            run.context.log.failed_check("pex", name, fault, run.flow.flow_id)
            run.context.changes.state.flags.has_issues = True
            faults.append(name)
    return faults


def _state_consistent(run: Execution) -> str | None:
    if run.context.changes.state.stack.get(run.flow.flow_id) is not run.flow:
        return "The flow has left the stack while it was carried out."
    flows = run.context.changes.state.stack.flows
    broken = (fault for check in STRUCTURE for fault in check(flows))
    return next(broken, None)


def _slots_intact(run: Execution) -> str | None:
    lost = run.filled - run.flow.slots.keys()
    return f"Slots were lost: {', '.join(sorted(lost))}." if lost else None


def _output_well_formed(run: Execution) -> str | None:
    if not run.has_result:
        return None
    if run.flow.spec.family not in FRAMED:
        return None if run.noted or not run.data else "Nothing was written to the scratchpad."
    frame = run.frame
    if frame is None or frame.data is None or not frame.display_type:
        return "The frame lacks data or a display type."
    return None


def _no_duplicate_flows(run: Execution) -> str | None:
    twice = invariants.check_duplicates(run.context.changes.state.stack.flows)
    return twice[0] if twice else None


def _flags_coherent(run: Execution) -> str | None:
    state = run.context.changes.state
    waiting = any(flow.standing.state is FlowState.PENDING for flow in state.stack.flows)
    if state.flags.keep_going and not waiting:
        return "keep_going is set and no flow is waiting."
    if run.warning is not None and not state.flags.has_issues:
        return "has_issues was cleared although the results are not complete."
    return None


CHECKS: tuple[tuple[str, Callable[[Execution], str | None]], ...] = (
    ("state_consistent", _state_consistent),
    ("slots_intact", _slots_intact),
    ("output_well_formed", _output_well_formed),
    ("no_duplicate_flows", _no_duplicate_flows),
    ("flags_coherent", _flags_coherent),
)
