"""Denial: the open question determines the effect of a “no”."""

from __future__ import annotations

from orchestrator.agent.corrections.flows import correct_flow
from orchestrator.agent.messages.answers import act
from orchestrator.agent.messages.displayed_rows import talk_about_rows
from orchestrator.agent.open_question import answer_open, nothing_open
from orchestrator.agent.tasks import cancel
from orchestrator.context import TurnContext
from orchestrator.dialogue.understanding import Understanding


def deny(context: TurnContext, understood: Understanding) -> None:
    if not understood.slots and answer_open(context):
        return
    entry = context.state.ambiguity.current
    flow = context.state.stack.active
    if entry is None and flow is not None:
        cancel(context, context.state.stack.root(flow))  # the user interrupted the running task
    elif entry is None:
        if not talk_about_rows(context, understood):
            nothing_open(context)
    elif flow is not None and entry.flow_id == flow.flow_id and understood.slots:
        correct_flow(context, flow, understood.slots)  # "no, on Friday"
    else:
        act(context, entry, entry.about.no())
