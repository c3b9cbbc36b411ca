"""PEX: finds the active flow's policy and has it carried out. Which flow is active, the Agent decides."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.pex.calls.compensate import UNDO, undo_first
from orchestrator.pex.execution import Ending, Execution, Failed
from orchestrator.pex.policy import BasePolicy
from orchestrator.pex.steps.check import find_work
from orchestrator.tools.runner import ToolRunner
from orchestrator.types import Dact


class PEX:
    def __init__(self, policies: Mapping[Dact, BasePolicy], tools: ToolRunner) -> None:
        self._policies = policies
        self._tools = tools

    async def execute(self, context: TurnContext) -> Ending:
        """Carry out the active flow."""
        work = find_work(context, self._policies)
        if isinstance(work, Failed):
            return work
        flow, policy = work
        close_answered_questions(context, flow)
        run = Execution(flow, context, self._tools)
        ending = await undo_first(run) if UNDO in flow.notes else None
        ending = ending or await policy.execute(run)
        keep_latest_question(context, flow)
        return ending


def close_answered_questions(context: TurnContext, flow: BaseFlow) -> None:
    """Close the questions about slots that hold a value by now."""
    handler = context.changes.state.ambiguity
    for entry in list(handler.open):
        if entry.flow_id == flow.flow_id and entry.slot is not None and flow.holds(entry.slot):
            handler.resolve(entry)


def keep_latest_question(context: TurnContext, flow: BaseFlow) -> None:
    """Close all open questions of a flow but the latest: only that one is still meant."""
    handler = context.changes.state.ambiguity
    mine = [entry for entry in handler.open if entry.flow_id == flow.flow_id]
    for entry in mine[:-1]:
        handler.resolve(entry)
