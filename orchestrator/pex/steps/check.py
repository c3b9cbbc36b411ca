"""The seven checks before anything is spent on a flow (PX-2). Slots are checked after their review."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.specification import Priority
from orchestrator.errors import FailureCategory
from orchestrator.pex.execution import Execution, Failed
from orchestrator.tools.toolbox import Tool
from orchestrator.tools.trifecta import tools_to_approve
from orchestrator.types import Dact, FlowId

Policy = TypeVar("Policy")


class Check(NamedTuple):
    name: str
    find_fault: Callable[[Execution], str | None]


def find_work(context: TurnContext, policies: Mapping[Dact, Policy]) -> tuple[BaseFlow, Policy] | Failed:
    """The first two checks: the active flow and its policy, without which there is nothing to carry out."""
    flow = context.changes.state.stack.active
    if flow is None:
        return _refuse(context, ACTIVE_FLOW, "There is no active flow.")
    policy = policies.get(flow.spec.dact)
    if policy is None:
        return _refuse(context, POLICY_REGISTERED, "The flow has no policy.", flow.flow_id)
    return flow, policy


def check(run: Execution) -> Failed | None:
    """Run the checks that need no slots; the first that does not hold ends the execution."""
    return _first_failure(run, BEFORE_REVIEW)


def check_slots(run: Execution) -> Failed | None:
    """Run the checks on slots, once they have been reviewed."""
    return _first_failure(run, AFTER_REVIEW)


def _first_failure(run: Execution, checks: tuple[Check, ...]) -> Failed | None:
    for name, find_fault in checks:
        fault = find_fault(run)
        if fault is not None:
            return _refuse(run.context, name, fault, run.flow.flow_id)
    return None


def _refuse(context: TurnContext, name: str, fault: str, flow_id: FlowId | None = None) -> Failed:
    """End an execution because of a check that did not hold; the Agent hears of it (AG-5)."""
    context.log.failed_check("pex", name, fault, flow_id)
    context.changes.state.flags.has_issues = True
    return Failed(FailureCategory.SERVER_ERROR, "I cannot do that at the moment.", check=name)


def _required_slots(run: Execution) -> str | None:
    missing = [slot.name for slot in run.flow.missing() if slot.priority is Priority.REQUIRED]
    return f"Slots are missing: {', '.join(missing)}." if missing else None


def _elective_slots(run: Execution) -> str | None:
    return None if run.flow.is_filled() else "No slot of an elective group is filled."


def _tools(run: Execution) -> list[Tool | None]:
    return [run.tools.find(use.tool_id) for use in run.flow.spec.tools]


def _tools_in_manifest(run: Execution) -> str | None:
    found = _tools(run)
    return None if all(found) else "A tool of the flow is not in the manifest."


def _time_outs(run: Execution) -> str | None:
    without = [tool for tool in _tools(run) if tool and tool.spec.timeout_ms <= 0]
    return f"{without[0].spec.tool_id} has no time-out." if without else None


def _trifecta_gate(run: Execution) -> str | None:
    """Never stops the flow by itself: it names the calls that `invoke` must hold for an approval."""
    run.gated = tools_to_approve(
        [tool for tool in _tools(run) if tool], run.context.changes.state.intake.labels
    )
    return None


ACTIVE_FLOW = "active_flow"
POLICY_REGISTERED = "policy_registered"

BEFORE_REVIEW = (
    Check("tools_in_manifest", _tools_in_manifest),
    Check("time_outs", _time_outs),
    Check("trifecta_gate", _trifecta_gate),
)

AFTER_REVIEW = (
    Check("required_slots", _required_slots),
    Check("elective_slots", _elective_slots),
)

CHECKS = (ACTIVE_FLOW, POLICY_REGISTERED, *(check.name for check in (*BEFORE_REVIEW, *AFTER_REVIEW)))
