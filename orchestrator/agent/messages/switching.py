"""Cancelling tasks and coming back to interrupted ones (IR-1, IR-2)."""

from __future__ import annotations

import re

from orchestrator.agent.messages.digressions import leave_open
from orchestrator.agent.messages.tasks import start_task
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.resumption import Choose, NothingToResume, Resume, find_words, match_words, rank
from orchestrator.dialogue.understanding import Understanding
from orchestrator.res.wording import name_doing

_EVERYTHING = re.compile(r"\b(everything|all of (it|them|this)|all tasks)\b", re.IGNORECASE)


def cancel_task(turn: RunningTurn, understood: Understanding) -> None:
    """Give up the task that is meant, or the present one; `flows` names one to start instead (FS-12)."""
    stack = turn.changes.state.stack
    live = stack.live()
    if not live:
        turn.changes.remark(RemarkKind.NOTHING_TO_CANCEL)
        leave_open(turn)
        return
    for flow in live if _EVERYTHING.search(understood.text) else [_find_meant(turn, understood.target)]:
        if not flow.is_finished:
            cancel(turn, flow)
    if understood.flows and understood.flows[0].score == 1.0:
        start_task(turn, understood.flows[0].dact, understood.slots)


def cancel(turn: RunningTurn, flow: BaseFlow, *, told: bool = True) -> None:
    """Give a flow up; `told`: say so."""
    turn.changes.state.stack.cancel(flow)
    turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
    if told:
        turn.changes.remark(RemarkKind.CANCELLED, flow_id=flow.flow_id)
    turn.carry_on = False


def _find_meant(turn: RunningTurn, target: str | None) -> BaseFlow:
    """The live flow that the words describe, or that has this identifier; else the one on top."""
    live = turn.changes.state.stack.live()
    if target is None:
        return live[-1]
    known = next((flow for flow in live if target in {flow.flow_id, flow.dact}), None)
    if known is not None:
        return known
    mentioned = find_words(target)
    return max(reversed(live), key=lambda flow: len(match_words(mentioned, flow)))


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
