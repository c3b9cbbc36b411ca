from orchestrator.agent.handover import request_operator_if_stuck
from orchestrator.agent.messages.displayed_rows import talk_about_rows
from orchestrator.agent.open_question import answer_open, leave_open
from orchestrator.context import TurnContext
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import Level, Option, Unclear
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.wording import name_task

WORTH_OFFERING = 0.1
"""Minimum score of an offered flow, from 0 to 1."""


def be_unsure(context: TurnContext, understood: Understanding) -> None:
    """Handle a message that was not understood.

    Unless it answers a skill's question or refers to displayed rows, repeat the open question, or ask which
    task the user wants and offer the most likely tasks.
    """
    state = context.state
    entry = state.ambiguity.current
    context.changes.carry_on = False
    if answer_open(context):
        return
    if talk_about_rows(context, understood):
        leave_open(context)
        return
    if entry is not None and entry.level is not Level.GENERAL:
        context.tell(NoticeKind.NOT_UNDERSTOOD, words=list(understood.not_understood))
        request_operator_if_stuck(context)
        return
    if understood.not_understood:
        context.tell(NoticeKind.NOT_UNDERSTOOD, words=list(understood.not_understood))
    flows = context.world.domain.flows
    options = tuple(
        Option(name_task(flows[score.dact]), "start_flow", {"dact": score.dact})
        for score in understood.flows[: context.world.domain.config.ambiguity.max_choices]
        if score.dact in flows and score.score >= WORTH_OFFERING
    )
    state.ambiguity.declare(Unclear(options=options))
    request_operator_if_stuck(context)
