"""PEX: finds the active flow's policy and has it carried out. Which flow is active, the Agent decides."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.context import TurnContext
from orchestrator.pex.execution import Execution, Failed
from orchestrator.pex.policy import BasePolicy
from orchestrator.pex.steps.check import refuse
from orchestrator.tools.runner import ToolRunner
from orchestrator.types import Dact


class PEX:
    def __init__(self, policies: Mapping[Dact, BasePolicy], tools: ToolRunner) -> None:
        self._policies = policies
        self._tools = tools

    def find_work(self, context: TurnContext) -> tuple[BasePolicy, Execution] | Failed:
        """Find the active flow and its policy, without which there is nothing to carry out."""
        flow = context.changes.state.stack.active
        if flow is None:
            return refuse(context, "active_flow", "There is no active flow.")
        policy = self._policies.get(flow.spec.dact)
        if policy is None:
            return refuse(context, "policy_registered", "The flow has no policy.", flow.flow_id)
        return policy, Execution(flow, context, self._tools)
