"""The end of a flow that did what it is for: outputs kept, state set, flags set (PX-14)."""

from __future__ import annotations

from orchestrator.pex.choices import Choices
from orchestrator.pex.execution import Execution


def complete(run: Execution, policy: Choices) -> None:
    """Mark the flow Completed; its outputs stay with it for flows that take them (FS-7)."""
    state = run.world.state
    run.flow.outputs.update(policy.outputs(run))
    state.stack.complete(run.flow, run.world.now)
    state.ambiguity.resolve(flow_id=run.flow.flow_id)
    state.flags.has_issues = run.frame is not None and run.frame.warning is not None
