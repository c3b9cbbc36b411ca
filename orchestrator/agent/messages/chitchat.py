"""Answer small talk."""

import re

from orchestrator.agent.open_question import find_answer, leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding

_ASKING = re.compile(
    r"(?:hi|hello|ok(?:ay)?|and|now|then|also|please|kindly|just|(?:can|could|would|will) you|[,. ])*"
    r"(?:send|e-?mail|mail|text|print|forward|give|get|fetch|bring|order|call|make|write|show|find|tell)\b"
    r"|.*\b(?:i (?:need|want)|i(?:['’]d| would) like|(?:can|could|may) i (?:get|have)) (?:an?|the|my|some)\b",
    re.IGNORECASE,
)
"""How something is asked for; whoever asks for what there is not wants to hear that, and no small talk."""


def chat(turn: RunningTurn, understood: Understanding) -> None:
    answer = find_answer(turn, understood.target)
    first = turn.changes.state.turn <= 1
    if answer is None and first:
        turn.changes.remark(RemarkKind.GREETING)
    elif answer is None and _ASKING.match(understood.text):
        turn.changes.remark(RemarkKind.NO_ANSWER, request=True)
    else:
        turn.changes.remark(RemarkKind.CHITCHAT, text=answer or "")
    leave_open(turn)
