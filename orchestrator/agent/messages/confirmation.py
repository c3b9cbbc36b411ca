"""Take a yes: what it means depends on the open question."""

from __future__ import annotations

from orchestrator.agent.messages.correction import correct_flow
from orchestrator.agent.messages.task import fill
from orchestrator.agent.open_question import answer_open, nothing_open
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Ambiguity, Level
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding
from orchestrator.pex.calls.consent import confirm_candidate


def confirm(turn: RunningTurn, understood: Understanding) -> None:
    """Take a yes."""
    if not understood.slots and answer_open(turn):
        return
    entry = turn.changes.state.ambiguity.current
    flow = turn.changes.state.stack.active
    if entry is None:
        nothing_open(turn)
    elif flow is not None and understood.slots and entry.level is not Level.SPECIFIC:
        correct_flow(turn, flow, understood.slots)  # "yes, but in business class"
    elif flow is not None and understood.slots:
        fill(turn, flow, understood.slots)
    elif flow is not None and entry.flow_id == flow.flow_id and _is_yes_or_no(entry):
        _confirm_entry(turn, flow, entry)
    else:
        turn.changes.remark(RemarkKind.NOT_UNDERSTOOD)
        turn.carry_on = False


def _is_yes_or_no(entry: Ambiguity) -> bool:
    """A confirmation, or a question with one candidate: "Do you mean …?"."""
    if entry.level is Level.CONFIRMATION:
        return True
    return entry.metadata.get("about") == "value" and len(entry.candidates) == 1


def _confirm_entry(turn: RunningTurn, flow: BaseFlow, entry: Ambiguity) -> None:
    about = entry.metadata.get("about")
    turn.changes.state.ambiguity.resolve(entry)
    turn.carry_on = True
    if about == "value" and entry.slot is not None and entry.candidates:
        fill(turn, flow, {entry.slot: entry.candidates[0]})
        flow.confirm(entry.slot)
    elif confirm_candidate(flow):
        flow.confirm()
