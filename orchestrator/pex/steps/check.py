"""Checks before anything is spent on a flow (PX-2): those that need no slots, which are not reviewed yet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.errors import FailureCategory
from orchestrator.pex.execution import Execution, Failed
from orchestrator.tools.trifecta import tools_to_approve
from orchestrator.types import Dact, FlowId

Policy = TypeVar("Policy")

Check = Callable[[Execution], str | None]


def find_work(context: TurnContext, policies: Mapping[Dact, Policy]) -> tuple[BaseFlow, Policy] | Failed:
    """Find the active flow and its policy, without which there is nothing to carry out."""
    flow = context.changes.state.stack.active
    if flow is None:
        return refuse(context, "active_flow", "There is no active flow.")
    policy = policies.get(flow.spec.dact)
    if policy is None:
        return refuse(context, "policy_registered", "The flow has no policy.", flow.flow_id)
    return flow, policy


def check(run: Execution) -> Failed | None:
    """Make the checks on the flow's tools; the first that does not hold ends the execution."""
    return first_failure(run, TOOL_CHECKS)


def first_failure(run: Execution, checks: tuple[Check, ...]) -> Failed | None:
    for find_fault in checks:
        fault = find_fault(run)
        if fault is not None:
            return refuse(run.context, find_fault.__name__, fault, run.flow.flow_id)
    return None


def refuse(context: TurnContext, name: str, fault: str, flow_id: FlowId | None = None) -> Failed:
    """End an execution because of a check that did not hold; the Agent hears of it (AG-5)."""
    context.log.failed_check("pex", name, fault, flow_id)
    context.changes.state.flags.has_issues = True
    return Failed(FailureCategory.SERVER_ERROR, "I cannot do that at the moment.", check=name)


def tools_in_manifest(run: Execution) -> str | None:
    found = run.tools.find_all(run.flow.spec.tools)
    return None if len(found) == len(run.flow.spec.tools) else "A tool of the flow is not in the manifest."


def time_outs(run: Execution) -> str | None:
    tools = run.tools.find_all(run.flow.spec.tools)
    return next(
        (f"{tool.spec.tool_id} has no time-out." for tool in tools if tool.spec.timeout_ms <= 0), None
    )


def trifecta_gate(run: Execution) -> str | None:
    """Name the calls that must be approved; it never stops the flow by itself."""
    run.to_approve = tools_to_approve(run.tools.find_all(run.flow.spec.tools), run.state.intake.labels)
    return None


TOOL_CHECKS: tuple[Check, ...] = (tools_in_manifest, time_outs, trifecta_gate)
