"""Answer small talk."""

from typing import get_args

from orchestrator.agent.open_question import find_answer, leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import cancel
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Cue, Understanding
from orchestrator.domain.schema import SmallTalkName

SMALL_TALK = frozenset(get_args(SmallTalkName))


def answer_small_talk(turn: RunningTurn, about: str) -> None:
    """Answer small talk. A request to repeat gets the open question, or the last reply."""
    said = turn.changes.state.history.last_said("agent")
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
    elif answer is None and Cue.REQUESTS in understood.cues:
        turn.changes.remark(RemarkKind.NO_ANSWER, request=True)
    else:
        turn.changes.remark(RemarkKind.CHITCHAT, text=answer or "")
    leave_open(turn)
