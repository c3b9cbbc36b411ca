"""Cancel the task that the user refers to, or all tasks (IR-1)."""

from orchestrator.agent.messages.answers import act
from orchestrator.agent.messages.resumption import find_words, match_words
from orchestrator.agent.messages.task import start_task
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.tasks import cancel
from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.understanding import Cue, Understanding
from orchestrator.types import FlowId


def cancel_task(context: TurnContext, understood: Understanding) -> None:
    """Cancel the task that the user refers to, or all tasks, unless the open question defines another action.

    If the message certainly names another task, start that task (FS-12).
    """
    stack = context.state.stack
    live = stack.live()
    question = context.state.ambiguity.current
    instead = None if question is None or (live and understood.target) else question.about.stop()
    if question is not None and instead is not None:
        act(context, question, instead)
        return
    if not live:
        context.tell(NoticeKind.NOTHING_TO_CANCEL)
        leave_open(context)
        return
    everything = Cue.ALL_TASKS in understood.cues
    if everything:
        context.state.forget_later()
    for flow in live if everything else [find_meant(context, understood.target)]:
        if not flow.is_finished:
            cancel(context, flow)
    starts = bool(understood.flows) and understood.flows[0].score == 1.0
    if question is not None and (request := question.about.waiting_request):
        context.state.ambiguity.resolve(question)
        if not starts and not everything:
            context.state.put_off(FlowId(""), request)  # now there is room for the request
    if starts:
        start_task(context, understood.flows[0].dact, understood.slots)


def find_meant(context: TurnContext, target: str | None) -> BaseFlow:
    """Return the live flow that best matches `target` (ID, name or description).

    Default: the top flow's root.
    """
    stack = context.state.stack
    live = stack.live()
    if target is None:
        return stack.root(live[-1])
    known = next((flow for flow in live if target in {flow.flow_id, flow.dact}), None)
    if known is not None:
        return known
    mentioned = find_words(target)
    return max(reversed(live), key=lambda flow: len(match_words(mentioned, flow)))
