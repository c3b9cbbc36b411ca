"""Slot values for the running task."""

from orchestrator.agent.corrections.flows import changed_slots, correct_flow
from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.tasks import fill, plain_values, stop_waiting
from orchestrator.context import TurnContext
from orchestrator.dialogue.lifecycle import AWAITING_CONTEXT
from orchestrator.dialogue.understanding import Understanding


def take_value(context: TurnContext, understood: Understanding) -> None:
    flow = context.state.stack.active
    top = context.state.stack.top
    if flow is None and top is not None and top.status == AWAITING_CONTEXT:
        stop_waiting(context, top)
        flow = top
    if flow is None:
        be_unsure(context, understood)
    elif changed_slots(flow, plain_values(understood.slots)) & flow.slots.keys():
        correct_flow(context, flow, understood.slots)
    else:
        fill(context, flow, understood.slots)
