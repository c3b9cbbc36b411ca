"""Answers to small talk."""

from typing import get_args

from orchestrator.agent.open_question import find_answer, leave_open
from orchestrator.agent.tasks import cancel
from orchestrator.context import TurnContext
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.understanding import Cue, Understanding
from orchestrator.domain.schema import SmallTalkName

SMALL_TALK = frozenset(get_args(SmallTalkName))


def answer_small_talk(context: TurnContext, about: str) -> None:
    """Answer small talk.

    For a request to repeat, show the last reply, unless an open question is repeated anyway.
    """
    said = context.state.history.last_said("agent")
    if about != "repeat" or context.state.ambiguity.current is None:
        context.tell(NoticeKind.SMALL_TALK, about=about, said=said)


def _close_offer(context: TurnContext) -> None:
    """Cancel a task outside plans that waits for a confirmation, because the user is leaving."""
    entry = context.state.ambiguity.current
    flow = context.state.stack.active
    if entry is None or flow is None or entry.flow_id != flow.flow_id or flow.plan_id is not None:
        return
    if entry.about.fingerprint is not None:
        cancel(context, flow)


def chat(context: TurnContext, understood: Understanding) -> None:
    if understood.target == "goodbye":
        _close_offer(context)
    answer = find_answer(context, understood.target)
    if answer is None and understood.target is not None and understood.target in SMALL_TALK:
        answer_small_talk(context, understood.target)
        leave_open(context)
        return
    first = context.state.turn <= 1
    if answer is None and first:
        context.tell(NoticeKind.GREETING)
    elif answer is None and Cue.REQUESTS in understood.cues:
        context.tell(NoticeKind.NO_ANSWER, request=True)
    else:
        context.tell(NoticeKind.CHITCHAT, text=answer or "")
    leave_open(context)
