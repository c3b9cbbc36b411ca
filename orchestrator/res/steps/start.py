"""The beginning of a response: finished flows leave the stack, the one below goes on (RS-1, FS-9)."""

from __future__ import annotations

from orchestrator.context import World
from orchestrator.dialogue.lifecycle import FlowState, Reason
from orchestrator.dialogue.remark import RemarkKind


def start(world: World) -> None:
    """Take finished flows off the stack; `keep_going` says whether another flow is to be carried out now."""
    state = world.state
    waiting = {flow.flow_id: flow.standing for flow in state.stack.flows}
    popped = state.stack.pop_finished(world.now)
    for flow in popped:
        world.finished.append(flow)
        state.ambiguity.resolve(flow_id=flow.flow_id)
        if flow.state is FlowState.COMPLETED:
            world.story.append(flow)
        reason = None if flow.reason is None else flow.reason.value
        world.event(
            "flow_popped", dact=flow.dact, flow_id=flow.flow_id, state=flow.state.value, reason=reason
        )
    for fault in state.stack.check():
        world.failed_check("res", "stack", fault)
    active = state.stack.active
    before = waiting.get(active.flow_id) if active is not None else None
    state.flags.keep_going = before is not None and before.state is FlowState.PENDING
    if active is not None and before is not None and before.reason is Reason.INTERRUPTED:
        world.remark(RemarkKind.BACK_TO, flow_id=active.flow_id)
        world.asks_again = True
