"""The base policy, with one method per step of a flow, and policy lookup (PX-1).

Public API for domains: subclass `BasePolicy` and override a step or choice. The state of a turn is in an
`Execution`, not in a policy.
"""

from collections.abc import Mapping
from typing import ClassVar

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.pex import steps
from orchestrator.pex.calls.effects import undo_first
from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Completed, Ending, Execution, Failed, Partial
from orchestrator.pex.steps.check import refuse
from orchestrator.tools.runner import ToolRunner
from orchestrator.types import Dact


class BasePolicy(Choices):
    """A flow type's policy, with one instance per process. Steps return an ending, or None to continue."""

    dact: ClassVar[str | None] = None
    """The name of the flow that a domain's policy runs. A flow can also name its policy in YAML."""

    check = steps.check
    review = steps.review
    check_slots = steps.check_slots
    invoke = steps.invoke
    results = steps.results
    verify_results = steps.verify_results
    complete = steps.complete
    verify = steps.verify
    recover = steps.recover

    async def execute(self, run: Execution) -> Ending:
        """Run the steps in order until one returns an ending. After a failure, `recover` chooses the ending."""
        _close_answered_questions(run)
        in_order = (
            self.check,
            self.review,
            self.check_slots,
            self.invoke,
            self.results,
            self.verify_results,
            self.complete,
            self.verify,
        )
        ending: Ending | None = await undo_first(run) if run.flow.progress.undo_first else None
        for step in in_order:
            ending = ending or await step(run)
        if isinstance(ending, Failed):
            ending = await self.recover(run, ending)
        _keep_latest_question(run)
        return ending or (Completed() if run.warning is None else Partial(run.warning))


def _close_answered_questions(run: Execution) -> None:
    """Close questions about slots that now have a value, directly or through their group."""
    handler = run.context.state.ambiguity
    if not handler.open:
        return
    needed = {slot.name for slot in run.flow.open_slots()}
    for entry in list(handler.open):
        slot = run.flow.slot(entry.slot or "") if entry.flow_id == run.flow.flow_id else None
        in_group = slot is not None and slot.group is not None and slot.name not in needed
        if slot is not None and (in_group or run.flow.holds(slot.name)):
            handler.resolve(entry)


def _keep_latest_question(run: Execution) -> None:
    handler = run.context.state.ambiguity
    mine = [entry for entry in handler.open if entry.flow_id == run.flow.flow_id]
    for entry in mine[:-1]:
        handler.resolve(entry)


class PEX:
    def __init__(self, policies: Mapping[Dact, BasePolicy], tools: ToolRunner) -> None:
        self._policies = policies
        self._tools = tools

    def find_work(self, context: TurnContext, flow: BaseFlow | None) -> tuple[BasePolicy, Execution] | Failed:
        """Return the policy for `flow` and a new execution, or Failed if the flow or its policy is missing."""
        if flow is None:
            return refuse(context, "active_flow", "No flow is active.")
        policy = self._policies.get(flow.spec.dact)
        if policy is None:
            return refuse(context, "policy_registered", "The flow has no policy.", flow.flow_id)
        return policy, Execution(flow, context, self._tools, self._tools.find_all(flow.spec.tools))
