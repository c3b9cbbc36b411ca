"""Come back to an interrupted task (IR-2)."""

from __future__ import annotations

from orchestrator.agent.open_question import leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.resumption import Choose, NothingToResume, Resume, find_words, match_words, rank
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.wording import name_doing


def resume_task(turn: RunningTurn, understood: Understanding) -> None:
    """Come back to an interrupted task; with several that fit, the user chooses."""
    state, context = turn.changes.state, turn.context
    waiting = state.stack.interrupted()
    target = understood.target or ""
    known = next((flow for flow in waiting if target in {flow.flow_id, flow.dact}), None)
    if known is not None:
        _resume(turn, known)
        return
    active = state.stack.active
    if (
        active is not None
        and target
        and match_words(find_words(target), active)
        and not _fits(waiting, target)
    ):
        leave_open(turn)
        return
    match rank(target or understood.text, waiting, context.now, understood.intent):
        case Resume(flow):
            _resume(turn, flow)
        case Choose(flows):
            options = [
                Option(name_doing(flow).capitalize(), "resume_flow", {"flow_id": flow.flow_id})
                for flow in flows
            ]
            state.ambiguity.declare(
                Level.PARTIAL, options=options, turn_id=turn.work.turn_id, metadata={"about": "task"}
            )
            turn.carry_on = False
        case NothingToResume():
            if active is None:
                context.changes.remark(RemarkKind.NOTHING_TO_RESUME)
            leave_open(turn)


def _resume(turn: RunningTurn, flow: BaseFlow) -> None:
    turn.changes.state.stack.resume(flow, turn.context.now, reason="the user came back to another task")
    turn.changes.remark(RemarkKind.RESUMED, flow_id=flow.flow_id)
    turn.changes.asks_again = True
    turn.carry_on = True


def _fits(flows: list[BaseFlow], target: str) -> bool:
    return any(match_words(find_words(target), flow) for flow in flows)
