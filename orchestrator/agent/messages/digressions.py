"""Messages that change nothing on the stack: questions, help, status, chat, and what was not understood (IR-3)."""

from __future__ import annotations

from orchestrator.agent.messages.tasks import shown
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.plan import current_plan, read_progress
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.specification import Family
from orchestrator.dialogue.understanding import Digression, Understanding
from orchestrator.res.wording import name_doing, name_purpose, name_slot_of, name_task

MOST_TASKS_NAMED = 12
OPEN = "open"
"""About a question that a skill left open; any words answer it."""

WORTH_OFFERING = 0.1
"""Below this share a flow is not offered when a message was not understood."""


def digress(turn: RunningTurn, understood: Understanding) -> None:
    """Answer, then the open question again; how deep the digression is goes on record."""
    kind = understood.digression or Digression.QUESTION
    turn.changes.state.digression.record(kind)
    answer = _find_answer(turn, understood.target)
    if answer is not None:
        turn.changes.remark(RemarkKind.ANSWER, text=answer)
    else:
        _DIGRESSIONS[kind](turn)
    leave_open(turn)


def chat(turn: RunningTurn, understood: Understanding) -> None:
    answer = _find_answer(turn, understood.target)
    first = turn.changes.state.turn <= 1
    if answer is None and first:
        turn.changes.remark(RemarkKind.GREETING)
    else:
        turn.changes.remark(RemarkKind.CHITCHAT, text=answer or "")
    leave_open(turn)


def reject(turn: RunningTurn, why: str) -> None:
    """A message that `prepare` turned away: no flow is stacked (AG-5)."""
    names = ", ".join(
        _LANGUAGES.get(code, code) for code in turn.context.world.domain.config.language.supported
    )
    turn.changes.remark(RemarkKind.REJECTED, why=why, languages=names)
    leave_open(turn)


def be_unsure(turn: RunningTurn, understood: Understanding) -> None:
    """Ask the open question again, or what the user wants, with the likeliest tasks (general ambiguity)."""
    state = turn.changes.state
    entry = state.ambiguity.current
    turn.carry_on = False
    if answer_open(turn):
        return
    if entry is not None and entry.level is not Level.GENERAL:
        turn.changes.remark(RemarkKind.NOT_UNDERSTOOD)
        return
    flows = turn.context.world.domain.flows
    options = [
        Option(name_task(flows[score.dact]), "start_flow", {"dact": score.dact})
        for score in understood.flows[: turn.context.world.domain.config.ambiguity.max_choices]
        if score.dact in flows and score.score >= WORTH_OFFERING
    ]
    state.ambiguity.declare(Level.GENERAL, options=options, turn_id=turn.work.turn_id)


def answer_open(turn: RunningTurn) -> bool:
    """Whether a skill asked: then it goes on, and reads the user's words itself."""
    entry = turn.changes.state.ambiguity.current
    if entry is None or entry.metadata.get("about") != OPEN or turn.changes.state.stack.active is None:
        return False
    turn.changes.state.ambiguity.resolve(entry)
    turn.carry_on = True
    return True


def leave_open(turn: RunningTurn) -> None:
    """Nothing changes; a task's open question is asked again without counting a round.

    What we did not understand before is not asked about any more.
    """
    turn.changes.state.ambiguity.resolve(level=Level.GENERAL)
    turn.changes.asks_again = True
    turn.carry_on = (
        turn.changes.state.ambiguity.current is None and turn.changes.state.stack.active is not None
    )


def _find_answer(turn: RunningTurn, name: str | None) -> str | None:
    return next((answer.text for answer in turn.context.world.domain.answers if answer.name == name), None)


def _say_unknown(turn: RunningTurn) -> None:
    turn.changes.remark(RemarkKind.NO_ANSWER)


def _explain(turn: RunningTurn) -> None:
    """Why we ask: what the slot is, and what for."""
    entry, flow = turn.changes.state.ambiguity.current, turn.changes.state.stack.active
    if flow is None or entry is None or entry.flow_id != flow.flow_id:
        turn.changes.remark(RemarkKind.CLARIFICATION, slot=None, description=None, purpose="")
        return
    slot = flow.slot(entry.slot) if entry.slot is not None else None
    turn.changes.remark(
        RemarkKind.CLARIFICATION,
        slot=name_slot_of(flow, entry.slot) if entry.slot is not None else None,
        description=slot.description if slot is not None else None,
        level=entry.level.value,
        purpose=name_purpose(flow),
        flow_id=flow.flow_id,
    )


def _help(turn: RunningTurn) -> None:
    active = turn.changes.state.stack.active
    flows = turn.context.world.domain.flows.values()
    wanted = [flow for flow in flows if flow.spec.family is not Family.INTERNAL and flow.spec.examples]
    tasks = [name_task(flow) for flow in wanted]
    flow_id = active.flow_id if active is not None else None
    turn.changes.remark(RemarkKind.HELP, tasks=tasks[:MOST_TASKS_NAMED], flow_id=flow_id)


def _tell_status(turn: RunningTurn) -> None:
    plan = current_plan(turn.changes.state.stack)
    if plan is not None and plan.steps:
        tell_progress(turn, plan)
    active = turn.changes.state.stack.active
    if active is None:
        if plan is None:
            turn.changes.remark(RemarkKind.STATUS)
        return
    turn.changes.remark(
        RemarkKind.STATUS,
        flow_id=active.flow_id,
        filled=_filled(turn, active),
        missing=[name_slot_of(active, slot.name) for slot in active.missing()],
        waiting=[name_doing(flow) for flow in turn.changes.state.stack.interrupted()],
    )


def tell_progress(turn: RunningTurn, plan: PlanFlow) -> None:
    """How far a plan is, and what is still to come (PL-4)."""
    progress = read_progress(plan)
    turn.changes.remark(
        RemarkKind.PLAN_STATUS,
        flow_id=plan.flow_id,
        completed=progress.completed,
        total=progress.total,
        done=list(dict.fromkeys(step.label for step in plan.steps if step.is_done)),
        steps=[step.label for step in plan.steps if not step.is_finished],
    )


def _filled(turn: RunningTurn, flow: BaseFlow) -> list[dict[str, object]]:
    return [
        {"name": name_slot_of(flow, name), "value": shown(turn, flow, name, slot.value)}
        for name, slot in flow.slots.items()
        if (spec := flow.slot(name)) is not None and spec.description
    ]


_DIGRESSIONS = {
    Digression.QUESTION: _say_unknown,
    Digression.CLARIFICATION: _explain,
    Digression.HELP: _help,
    Digression.STATUS: _tell_status,
}

_LANGUAGES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "nl": "Dutch",
}
