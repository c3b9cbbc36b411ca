"""Take a no: what it means depends on the open question."""

from __future__ import annotations

from orchestrator.agent.messages.correction import correct_flow, decide
from orchestrator.agent.messages.displayed_rows import talk_about_rows
from orchestrator.agent.open_question import answer_open, nothing_open
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import ask_what_to_change, cancel
from orchestrator.dialogue.ambiguity import Ambiguity
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding
from orchestrator.pex.calls.consent import drop_candidate
from orchestrator.plans.edits import ABOUT_DONE, KEEP


def deny(turn: RunningTurn, understood: Understanding) -> None:
    """Take a no."""
    if not understood.slots and answer_open(turn):
        return
    entry = turn.changes.state.ambiguity.current
    flow = turn.changes.state.stack.active
    if entry is None and flow is not None:
        cancel(turn, turn.changes.state.stack.root(flow))  # called out while it was at work
    elif entry is None:
        if not talk_about_rows(turn, understood.text):
            nothing_open(turn)
    elif entry.metadata.get("about") == ABOUT_DONE:
        decide(turn, KEEP)
    elif flow is None or entry.flow_id != flow.flow_id:
        turn.changes.state.ambiguity.resolve(entry)
        turn.changes.remark(RemarkKind.DECLINED)
        turn.carry_on = flow is not None
    elif understood.slots:
        correct_flow(turn, flow, understood.slots)  # "no, on Friday"
    else:
        _deny_entry(turn, flow, entry)


def _deny_entry(turn: RunningTurn, flow: BaseFlow, entry: Ambiguity) -> None:
    about = entry.metadata.get("about")
    if about == "unknown":
        turn.changes.remark(RemarkKind.LEFT_UNKNOWN, flow_id=flow.flow_id)
        cancel(turn, flow, told=False)
    elif about in {"retry", "change", "stopped", "elsewhere"}:
        cancel(turn, flow)
    elif about in {"candidate", "rows"}:
        drop_candidate(flow)
        turn.changes.state.ambiguity.resolve(entry)
        turn.changes.remark(RemarkKind.DECLINED)
        if _may_be_changed(flow):
            ask_what_to_change(turn, flow, declined=True)
        else:
            cancel(turn, flow, told=False)
    elif about == "value" and entry.slot is not None:
        flow.clear(entry.slot)
        turn.changes.state.ambiguity.resolve(entry)
        turn.carry_on = True
    else:
        turn.changes.remark(RemarkKind.NOT_UNDERSTOOD)
        turn.carry_on = False


def _may_be_changed(flow: BaseFlow) -> bool:
    """Say whether anything may be wanted otherwise, besides what the task was handed and passes on as it is."""
    own = (name for name in flow.spec.slots if name in flow.slots and flow.spec.slots[name].description)
    return any(name not in flow.spec.inputs or name not in flow.spec.outputs for name in own)
