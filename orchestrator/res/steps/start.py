"""The beginning of a response: finished flows leave the stack, the one below goes on (RS-1, FS-9)."""

from __future__ import annotations

from orchestrator.context import TurnContext
from orchestrator.dialogue.lifecycle import FlowState, Reason
from orchestrator.dialogue.remark import RemarkKind


def start(context: TurnContext) -> None:
    """Take finished flows off the stack; `keep_going` says whether another flow is to be carried out now."""
    state = context.changes.state
    waiting = {flow.flow_id: flow.status for flow in state.stack.flows}
    popped = state.stack.pop_finished(context.now)
    for flow in popped:
        context.changes.finished.append(flow)
        state.ambiguity.resolve(flow_id=flow.flow_id)
        if flow.state is FlowState.COMPLETED:
            context.changes.messages.append(flow)
        reason = None if flow.reason is None else flow.reason.value
        context.log.event(
            "flow_popped", dact=flow.dact, flow_id=flow.flow_id, state=flow.state.value, reason=reason
        )
    for fault in state.stack.check():
        context.log.failed_check("res", "stack", fault)
    active = state.stack.active
    before = waiting.get(active.flow_id) if active is not None else None
    state.flags.keep_going = before is not None and before.state is FlowState.PENDING
    if active is not None and before is not None and before.reason is Reason.INTERRUPTED:
        context.changes.remark(RemarkKind.BACK_TO, flow_id=active.flow_id)
        context.changes.asks_again = True
