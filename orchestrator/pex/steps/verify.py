"""Verify a flow (PX-15): its results before it is Completed, then the resulting state.

Invalid results start recovery (PX-16). After a committed side effect, faults are only recorded and flagged.
"""

from collections.abc import Callable, Iterable

from orchestrator.dialogue.lifecycle import FlowState
from orchestrator.errors import FailureCategory
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed
from orchestrator.pex.steps.results import FRAMED
from orchestrator.saying import say

Verification = Callable[[Execution], str | None]


async def verify_results(_policy: Choices, run: Execution) -> Ending | None:
    """Fail if the results are invalid, unless a side effect is committed."""
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
    """Record and flag faults in the state, which a retry would not fix."""
    _record_faults(run, OF_STATE)
    return None


def _record_faults(run: Execution, verifications: Iterable[Verification]) -> list[str]:
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


OF_RESULTS: tuple[Verification, ...] = (slots_intact, output_well_formed)
OF_STATE: tuple[Verification, ...] = (state_consistent, no_duplicate_flows, flags_coherent)
