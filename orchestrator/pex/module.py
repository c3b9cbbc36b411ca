"""PEX: finds the active flow's policy and has it carried out. Which flow is active is the Agent's business."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.errors import FailureCategory
from orchestrator.pex.ending import Ending, Failed
from orchestrator.pex.execution import Execution
from orchestrator.pex.policy import BasePolicy
from orchestrator.pex.tools import ToolRunner
from orchestrator.types import Dact
from orchestrator.world.world import World


class PEX:
    def __init__(self, policies: Mapping[Dact, BasePolicy], tools: ToolRunner) -> None:
        self._policies = policies
        self._tools = tools

    async def execute(self, world: World) -> Ending:
        """Carry out the active flow."""
        flow = world.state.stack.active
        if flow is None:
            world.failed_check("pex", "active_flow", "There is no active flow.")
            return Failed(FailureCategory.SERVER_ERROR, "There is nothing to do.", check="active_flow")
        policy = self._policies.get(flow.spec.dact)
        if policy is None:
            world.failed_check("pex", "policy_registered", "The flow has no policy.", flow.flow_id)
            return Failed(FailureCategory.SERVER_ERROR, "I cannot do that.", check="policy_registered")
        return await policy.execute(Execution(flow, world, self._tools))
