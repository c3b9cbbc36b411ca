"""Ask again, or offer the likeliest tasks, when a message was not understood."""

from orchestrator.agent.handover import request_operator_if_stuck
from orchestrator.agent.messages.displayed_rows import talk_about_rows
from orchestrator.agent.open_question import answer_open, leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.questions import Level, Option, Unclear
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.wording import name_task

WORTH_OFFERING = 0.1
"""Below this share a flow is not offered when a message was not understood."""


def be_unsure(turn: RunningTurn, understood: Understanding) -> None:
    """Repeat the open question, or ask what the user wants, with the likeliest tasks (general ambiguity)."""
    state = turn.changes.state
    entry = state.ambiguity.current
    turn.carry_on = False
    if answer_open(turn):
        return
    if talk_about_rows(turn, understood):
        leave_open(turn)
        return
    if entry is not None and entry.level is not Level.GENERAL:
        turn.changes.remark(RemarkKind.NOT_UNDERSTOOD, words=list(understood.not_understood))
        request_operator_if_stuck(turn)
        return
    if understood.not_understood:
        turn.changes.remark(RemarkKind.NOT_UNDERSTOOD, words=list(understood.not_understood))
    flows = turn.context.world.domain.flows
    options = tuple(
        Option(name_task(flows[score.dact]), "start_flow", {"dact": score.dact})
        for score in understood.flows[: turn.context.world.domain.config.ambiguity.max_choices]
        if score.dact in flows and score.score >= WORTH_OFFERING
    )
    state.ambiguity.declare(Unclear(options=options), turn.work.turn_id)
    request_operator_if_stuck(turn)
