"""Checks before a flow calls tools or models (PX-2). Slot checks run after the slots were reviewed."""

from collections.abc import Callable

from orchestrator.context import TurnContext
from orchestrator.dialogue.specification import Priority
from orchestrator.errors import FailureCategory
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Ending, Execution, Failed
from orchestrator.saying import say
from orchestrator.tools.trifecta import TRIFECTA_GATE
from orchestrator.types import FlowId

Check = Callable[[Execution], str | None]


async def check(_policy: Choices, run: Execution) -> Ending | None:
    """Check the flow's tools. The first failed check ends the execution."""
    for find_fault in TOOL_CHECKS:
        if (fault := find_fault(run)) is not None:
            return refuse(run.context, find_fault.__name__, fault, run.flow.flow_id)
    return None


def refuse(context: TurnContext, name: str, fault: str, flow_id: FlowId | None = None) -> Failed:
    """Record a failed check. Return the failure for the Agent (AG-5)."""
    context.log.failed_check("pex", name, fault, flow_id)
    context.state.note_issues()
    return Failed(FailureCategory.SERVER_ERROR, say("not_right_now"), check=name)


def tools_in_manifest(run: Execution) -> str | None:
    return (
        None
        if len(run.own_tools) == len(run.flow.spec.tools)
        else "A tool of the flow is not in the manifest."
    )


def time_outs(run: Execution) -> str | None:
    endless = next((tool.spec.tool_id for tool in run.own_tools if tool.spec.timeout_ms <= 0), None)
    return None if endless is None else f"{endless} has no timeout."


def required_slots(run: Execution) -> str | None:
    missing = [slot.name for slot in run.flow.missing() if slot.priority is Priority.REQUIRED]
    return f"Missing slots: {', '.join(missing)}." if missing else None


def elective_slots(run: Execution) -> str | None:
    return None if run.flow.is_filled() else "No slot of an elective group is filled."


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
    """Check the flow's slots after their review."""
    for find_fault in SLOT_CHECKS if not run.flow.is_filled() else ():
        if (fault := find_fault(run)) is not None:
            return refuse(run.context, find_fault.__name__, fault, run.flow.flow_id)
    return None
