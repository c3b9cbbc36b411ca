"""Answer side questions, small talk, and requests for help or status (IR-3). A goodbye cancels an unconfirmed offer."""

from typing import get_args

from orchestrator.agent.handover import hand_over
from orchestrator.agent.messages.displayed_rows import talk_about_rows
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.tasks import cancel, shown
from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.plan_steps import read_progress
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.specification import Family
from orchestrator.dialogue.understanding import Cue, Digression, Understanding
from orchestrator.domain.schema import SmallTalkName
from orchestrator.res.wording import name_doing, name_purpose, name_slot_of, name_task


def report_progress(context: TurnContext, plan: PlanFlow) -> None:
    """Report a plan's progress and its remaining steps (PL-4)."""
    progress = read_progress(plan)
    context.tell(
        NoticeKind.PLAN_STATUS,
        flow_id=plan.flow_id,
        completed=progress.completed,
        total=progress.total,
        done=plan.done_labels,
        steps=[step.label for step in plan.unfinished],
    )


MOST_TASKS_NAMED = 12


def digress(context: TurnContext, understood: Understanding) -> None:
    """Answer a digression, record it, and repeat the open question."""
    kind = understood.digression or Digression.QUESTION
    context.state.digression.record(kind)
    answer = _find_answer(context, understood.target)
    if answer is not None:
        context.tell(NoticeKind.ANSWER, text=answer)
    elif understood.target is not None and understood.target in SMALL_TALK:
        answer_small_talk(context, understood.target)
    elif not _is_about_rows(kind, understood) or not talk_about_rows(context, understood):
        _DIGRESSIONS[kind](context)
    leave_open(context)


def _is_about_rows(kind: Digression, understood: Understanding) -> bool:
    """Return whether a question can be about rows: “what times” can be, “how far are we” cannot."""
    return kind is Digression.QUESTION or (kind is Digression.STATUS and Cue.PROGRESS not in understood.cues)


def _answer_unknown(context: TurnContext) -> None:
    """Reply that the answer is unknown, or report the status of a running task that has no open question."""
    state = context.state
    if state.stack.active is not None and state.ambiguity.current is None:
        _report_status(context)
    else:
        context.tell(NoticeKind.NO_ANSWER)


def _explain(context: TurnContext) -> None:
    """Explain what the active flow's open question asks for, and why. If there is no such question, say so."""
    entry, flow = context.state.ambiguity.current, context.state.stack.active
    if flow is None or entry is None or entry.flow_id != flow.flow_id:
        context.tell(NoticeKind.CLARIFICATION, slot=None, description=None, purpose="")
        return
    slot = flow.slot(entry.slot) if entry.slot is not None else None
    context.tell(
        NoticeKind.CLARIFICATION,
        slot=name_slot_of(flow, entry.slot) if entry.slot is not None else None,
        description=slot.description if slot is not None else None,
        level=entry.level.value,
        purpose=name_purpose(flow),
        flow_id=flow.flow_id,
    )


def _help(context: TurnContext) -> None:
    active = context.state.stack.active
    flows = context.world.domain.flows.values()
    wanted = [flow for flow in flows if flow.spec.family is not Family.INTERNAL and flow.spec.examples]
    tasks = [name_task(flow) for flow in wanted]
    flow_id = active.flow_id if active is not None else None
    context.tell(NoticeKind.HELP, tasks=tasks[:MOST_TASKS_NAMED], flow_id=flow_id)


def _report_status(context: TurnContext) -> None:
    done = reversed(context.state.completed)
    ended = next((flow for flow in done if isinstance(flow, PlanFlow)), None)
    plan = context.state.stack.plan or (ended if context.state.stack.top is None else None)
    if plan is not None and plan.steps:
        report_progress(context, plan)
    active = context.state.stack.active
    if active is None:
        if plan is None:
            done = [note.summary for note in context.state.effects if note.is_done and note.summary]
            context.tell(NoticeKind.STATUS, done=done)
        return
    context.tell(
        NoticeKind.STATUS,
        flow_id=active.flow_id,
        filled=_filled(context, active),
        missing=[name_slot_of(active, slot.name) for slot in active.missing()],
        waiting=[
            *(name_doing(flow) for flow in context.state.stack.interrupted()),
            *(f"“{one}”" for requests in context.state.later.values() for one in requests),
        ],
    )


def _filled(context: TurnContext, flow: BaseFlow) -> list[dict[str, object]]:
    """List the filled slots, without IDs that only tools need."""
    return [
        {"name": name_slot_of(flow, name), "value": shown(context, flow, name, slot.value)}
        for name, slot in flow.slots.items()
        if (spec := flow.slot(name)) is not None
        and spec.description
        and (spec.type != "exact" or spec.prompt)
    ]


def _ask_person(context: TurnContext) -> None:
    hand_over(context, "The user asked for a person.")


_DIGRESSIONS = {
    Digression.QUESTION: _answer_unknown,
    Digression.CLARIFICATION: _explain,
    Digression.HELP: _help,
    Digression.STATUS: _report_status,
    Digression.PERSON: _ask_person,
}


SMALL_TALK = frozenset(get_args(SmallTalkName))


def answer_small_talk(context: TurnContext, about: str) -> None:
    """Answer small talk.

    If the user asks to repeat the last reply and a question is open, do nothing, because the question is
    repeated anyway.
    """
    said = context.state.history.last_said("agent")
    if about != "repeat" or context.state.ambiguity.current is None:
        context.tell(NoticeKind.SMALL_TALK, about=about, said=said)


def _close_offer(context: TurnContext) -> None:
    """Cancel the active task if it waits for a confirmation, because the user is leaving.

    A plan's step is not canceled.
    """
    entry = context.state.ambiguity.current
    flow = context.state.stack.active
    if entry is None or flow is None or entry.flow_id != flow.flow_id or flow.plan_id is not None:
        return
    if entry.about.fingerprint is not None:
        cancel(context, flow)


def chat(context: TurnContext, understood: Understanding) -> None:
    if understood.target == "goodbye":
        _close_offer(context)
    answer = _find_answer(context, understood.target)
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


def _find_answer(context: TurnContext, name: str | None) -> str | None:
    return next((answer.text for answer in context.world.domain.answers if answer.name == name), None)
