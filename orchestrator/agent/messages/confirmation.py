"""Confirmation: the open question determines the effect of a “yes”."""

from orchestrator.agent.corrections.flows import changed_slots, correct_flow
from orchestrator.agent.messages.answers import act
from orchestrator.agent.messages.displayed_rows import choose_row, show_requested_fields
from orchestrator.agent.open_question import (
    answer_open,
    ask_for_plain_yes,
    is_plain,
    leave_open,
    nothing_open,
)
from orchestrator.agent.tasks import fill
from orchestrator.context import TurnContext
from orchestrator.dialogue.questions import Level
from orchestrator.dialogue.understanding import Understanding


def confirm(context: TurnContext, understood: Understanding) -> None:
    """Handle a “yes”. If it adds or changes a value, it does not confirm anything (PX-18)."""
    if not understood.slots and answer_open(context):
        return
    entry = context.state.ambiguity.current
    flow = context.state.stack.active
    if entry is not None and entry.was_put_after(context.arrived_at):
        leave_open(context)
    elif entry is None:
        if not choose_row(context, understood):
            nothing_open(context)
    elif flow is not None and understood.slots and entry.level is Level.SPECIFIC:
        fill(context, flow, understood.slots)
    elif flow is not None and changed_slots(flow, understood.slots):
        correct_flow(context, flow, understood.slots)  # "yes, but in business class"
    elif entry.about.needs_plain_yes and not is_plain(understood):
        ask_for_plain_yes(context)
    else:
        act(context, entry, entry.about.yes())
    show_requested_fields(context, understood)  # "Yes, please. What is the address?"
