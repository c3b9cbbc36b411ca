"""Denial: the open question determines the effect of a “no”."""

from __future__ import annotations

from orchestrator.agent.corrections.flows import correct_flow
from orchestrator.agent.messages.answers import act
from orchestrator.agent.messages.displayed_rows import talk_about_rows
from orchestrator.agent.open_question import answer_open, nothing_open
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import cancel
from orchestrator.dialogue.understanding import Understanding


def deny(turn: RunningTurn, understood: Understanding) -> None:
    """Handle a “no”."""
    if not understood.slots and answer_open(turn):
        return
    entry = turn.changes.state.ambiguity.current
    flow = turn.changes.state.stack.active
    if entry is None and flow is not None:
        cancel(turn, turn.changes.state.stack.root(flow))  # called out while it was at work
    elif entry is None:
        if not talk_about_rows(turn, understood):
            nothing_open(turn)
    elif flow is not None and entry.flow_id == flow.flow_id and understood.slots:
        correct_flow(turn, flow, understood.slots)  # "no, on Friday"
    else:
        act(turn, entry, entry.about.no())
