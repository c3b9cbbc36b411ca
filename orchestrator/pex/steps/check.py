"""Checks before a flow calls tools or models (PX-2), and verification of its results and the state (PX-15).

Slot checks run after the review of the slots. Invalid results start recovery (PX-16), except after a committed side
effect. Then they are only recorded and flagged, like faults in the state.
"""

from collections.abc import Callable, Iterable

from orchestrator.context import TurnContext
from orchestrator.dialogue.lifecycle import FlowState
from orchestrator.dialogue.specification import Priority
from orchestrator.errors import FailureCategory
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed
from orchestrator.pex.steps.results import FRAMED
from orchestrator.saying import say
from orchestrator.tools.trifecta import TRIFECTA_GATE
from orchestrator.types import FlowId

Check = Callable[[Execution], str | None]


async def check(_policy: Choices, run: Execution) -> Ending | None:
    """Check the flow's tools. Return the failure of the first check that fails, or None."""
    return _refuse_first(run, TOOL_CHECKS)


def refuse(context: TurnContext, name: str, fault: str, flow_id: FlowId | None = None) -> Failed:
    """Record a failed check. Return the failure for the Agent (AG-5)."""
    context.log.failed_check("pex", name, fault, flow_id)
    context.state.note_issues()
    return Failed(FailureCategory.SERVER_ERROR, say("not_right_now"), check=name)


def tools_in_manifest(run: Execution) -> str | None:
    missing = len(run.own_tools) < len(run.flow.spec.tools)
    return "A tool in the flow is not in the manifest." if missing else None


def time_outs(run: Execution) -> str | None:
    endless = next((tool.spec.tool_id for tool in run.own_tools if tool.spec.timeout_ms <= 0), None)
    return None if endless is None else f"{endless} has no timeout."


def required_slots(run: Execution) -> str | None:
    missing = [slot.name for slot in run.flow.missing() if slot.priority is Priority.REQUIRED]
    return f"Missing slots: {', '.join(missing)}." if missing else None


def elective_slots(run: Execution) -> str | None:
    return None if run.flow.is_filled() else "No slot in an elective group is filled."


TOOL_CHECKS: tuple[Check, ...] = (tools_in_manifest, time_outs)
SLOT_CHECKS: tuple[Check, ...] = (required_slots, elective_slots)

# The names of all checks. `PEX.find_work` runs the first two. The last check runs right before each call,
# because labels change during a turn (PX-19).
CHECKS = (
    *("active_flow", "policy_registered"),
    *(one.__name__ for one in (*TOOL_CHECKS, *SLOT_CHECKS)),
    TRIFECTA_GATE,
)


async def check_slots(_policy: Choices, run: Execution) -> Ending | None:
    """Check the flow's slots after their review. Return the failure of the first check that fails, or None."""
    return None if run.flow.is_filled() else _refuse_first(run, SLOT_CHECKS)


def _refuse_first(run: Execution, checks: Iterable[Check]) -> Failed | None:
    for find_fault in checks:
        if (fault := find_fault(run)) is not None:
            return refuse(run.context, find_fault.__name__, fault, run.flow.flow_id)
    return None


async def verify_results(_policy: Choices, run: Execution) -> Ending | None:
    """Verify the results. Invalid results fail the flow, unless it has committed a side effect."""
    faults = _record_faults(run, OF_RESULTS)
    run.faulty = bool(faults)
    if not faults or run.has_effect:
        return None
    return Failed(
        FailureCategory.SERVER_ERROR,
        say("result_incomplete"),
        retryable=True,
        unusable=True,
        evidence={"faults": [*faults]},
    )


async def verify(_policy: Choices, run: Execution) -> Ending | None:
    """Verify the state. Faults are recorded and flagged, because a retry would not fix them."""
    _record_faults(run, OF_STATE)
    return None


def _record_faults(run: Execution, verifications: Iterable[Check]) -> list[str]:
    faults: list[str] = []
    for find_fault in verifications:
        fault = find_fault(run)
        if fault is not None:
            run.context.log.failed_check("pex", find_fault.__name__, fault, run.flow.flow_id)
            run.context.state.note_issues()
            faults.append(fault)
    return faults


def state_consistent(run: Execution) -> str | None:
    if run.context.state.stack.get(run.flow.flow_id) is not run.flow:
        return "The flow left the stack while it ran."
    return next(iter(run.context.state.stack.check_order()), None)


def slots_intact(run: Execution) -> str | None:
    lost = run.filled - run.flow.slots.keys()
    return f"Slots were lost: {', '.join(sorted(lost))}." if lost else None


def output_well_formed(run: Execution) -> str | None:
    if not run.has_result:
        return None
    if run.flow.spec.family not in FRAMED:
        return None if run.noted or not run.data else "Nothing was written to the scratchpad."
    frame = run.frame
    if frame is None or frame.data is None or not frame.display_type:
        return "The frame lacks data or a display type."
    return None


def no_duplicate_flows(run: Execution) -> str | None:
    return next(iter(run.context.state.stack.check_repeated()), None)


def flags_coherent(run: Execution) -> str | None:
    state = run.context.state
    waiting = any(flow.status.state is FlowState.PENDING for flow in state.stack.flows)
    if state.flags.keep_going and not waiting:
        return "keep_going is set, but no flow is waiting."
    if run.warning is not None and not state.flags.has_issues:
        return "has_issues was cleared although the results are incomplete."
    return None


OF_RESULTS: tuple[Check, ...] = (slots_intact, output_well_formed)
OF_STATE: tuple[Check, ...] = (state_consistent, no_duplicate_flows, flags_coherent)
