"""Answer small talk."""

import re
from typing import get_args

from orchestrator.agent.open_question import find_answer, leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import cancel
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding
from orchestrator.domain.schema import SmallTalkName
from orchestrator.nlu.nlu_context import find_last_said

_ASKING = re.compile(
    r"(?:hi|hello|ok(?:ay)?|and|now|then|also|please|kindly|just|(?:can|could|would|will) you|[,. ])*"
    r"(?:send|e-?mail|mail|text|print|forward|give|get|fetch|bring|order|call|make|write|show|find|tell)\b"
    r"|.*\b(?:i (?:need|want)|i(?:['’]d| would) like|(?:can|could|may) i (?:get|have)) (?:an?|the|my|some)\b",
    re.IGNORECASE,
)
"""Words of requests: a user who asks for something unavailable wants to know that, not small talk."""


SMALL_TALK = frozenset(get_args(SmallTalkName))


def answer_small_talk(turn: RunningTurn, about: str) -> None:
    """Answer small talk. A request to repeat gets the open question, or the last reply."""
    said = find_last_said(turn.changes.state, "agent")
    if about != "repeat" or turn.changes.state.ambiguity.current is None:
        turn.changes.remark(RemarkKind.SMALL_TALK, about=about, said=said)


def _close_offer(turn: RunningTurn) -> None:
    """Cancel a task that only waits for a confirmation, because the user is leaving. Plans stay."""
    entry = turn.changes.state.ambiguity.current
    flow = turn.changes.state.stack.active
    if entry is None or flow is None or entry.flow_id != flow.flow_id or flow.plan_id is not None:
        return
    if entry.about.fingerprint is not None:
        cancel(turn, flow)


def chat(turn: RunningTurn, understood: Understanding) -> None:
    if understood.target == "goodbye":
        _close_offer(turn)
    answer = find_answer(turn, understood.target)
    if answer is None and understood.target is not None and understood.target in SMALL_TALK:
        answer_small_talk(turn, understood.target)
        leave_open(turn)
        return
    first = turn.changes.state.turn <= 1
    if answer is None and first:
        turn.changes.remark(RemarkKind.GREETING)
    elif answer is None and _ASKING.match(understood.text):
        turn.changes.remark(RemarkKind.NO_ANSWER, request=True)
    else:
        turn.changes.remark(RemarkKind.CHITCHAT, text=answer or "")
    leave_open(turn)
