"""Fill slots of the running task."""

from orchestrator.agent.corrections.flows import changed_slots, correct_flow
from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import fill, plain_values, stop_waiting
from orchestrator.dialogue.lifecycle import AWAITING_CONTEXT
from orchestrator.dialogue.understanding import Understanding


def take_value(turn: RunningTurn, understood: Understanding) -> None:
    flow = turn.changes.state.stack.active
    top = turn.changes.state.stack.top
    if flow is None and top is not None and top.status == AWAITING_CONTEXT:
        stop_waiting(turn, top)
        flow = top
    if flow is None:
        be_unsure(turn, understood)
    elif changed_slots(flow, plain_values(understood.slots)) & flow.slots.keys():
        correct_flow(turn, flow, understood.slots)
    else:
        fill(turn, flow, understood.slots)
