"""Answer small talk."""

from __future__ import annotations

from orchestrator.agent.open_question import find_answer, leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding


def chat(turn: RunningTurn, understood: Understanding) -> None:
    answer = find_answer(turn, understood.target)
    first = turn.changes.state.turn <= 1
    if answer is None and first:
        turn.changes.remark(RemarkKind.GREETING)
    else:
        turn.changes.remark(RemarkKind.CHITCHAT, text=answer or "")
    leave_open(turn)
