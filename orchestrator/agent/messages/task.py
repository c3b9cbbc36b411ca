"""Handle requests for tasks (FS-9, FS-10)."""

from __future__ import annotations

from orchestrator.agent.corrections.flows import changed_slots, correct_flow
from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.tasks import cancel, done_by, enter, fill, plain_values, report_awaited, stop_waiting
from orchestrator.context import TurnContext
from orchestrator.dialogue.base_flow import Labels
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import AWAITING_CONTEXT, AWAITING_RESULT, PARKED, PLANNED
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import ChooseToStop, Option
from orchestrator.dialogue.stack import DepthLimit, Existing, LimitReached, OnLimit, Pushed
from orchestrator.dialogue.understanding import Cue, Understanding
from orchestrator.res.wording import name_doing, name_task
from orchestrator.saying import say
from orchestrator.types import Dact, JsonObject

_MANY = 2
"""Minimum number of differing required values that indicates a new task instead of a plan's step."""


def take_task(context: TurnContext, understood: Understanding) -> None:
    known = [score.dact for score in understood.flows if score.dact in context.world.domain.flows]
    state = context.state
    if known:
        waiting = state.stack.find(known[0])
        for entry in [
            e for e in state.ambiguity.open if waiting is not None and e.flow_id == waiting.flow_id
        ]:
            if entry.about.ends_when_asked_again:  # a repeated request answers the question
                state.ambiguity.resolve(entry)
        is_new = waiting is None and bool(state.effects) and not understood.is_click
        done = _find_done(context, known[0]) if is_new else None
        if done is not None and _corrects(done, understood):
            correct_flow(context, done, understood.slots)
            return
        if done is not None and _resembles(done, understood.slots):
            context.tell(NoticeKind.STAYS, flow_id=done.flow_id, done=done_by(context, done))
        if not _changes_the_offer(context, known[0], understood.slots):
            start_task(context, known[0], understood.slots)
    else:
        be_unsure(context, understood)


def _changes_the_offer(context: TurnContext, dact: Dact, labels: Labels) -> bool:
    """Apply values for “the booking” to a booking that has only been offered.

    Return False if the values don't fit the offer, or if the user names an existing booking.
    """
    flow = context.state.stack.active if labels and context.state.ambiguity.open else None
    entry = None if flow is None else context.state.ambiguity.current
    if flow is None or entry is None or entry.flow_id != flow.flow_id or entry.about.fingerprint is None:
        return False
    slots = context.world.domain.flows[dact].spec.slots
    made = context.world.domain.flows[dact].spec.required & {*flow.spec.outputs}
    alike = {
        name: [one.name for one in flow.spec.slots.values() if one.takes_what(slots[name])] for name in labels
    }
    if not made or made & labels.keys() or any(len(names) != 1 for names in alike.values()):
        return False
    correct_flow(context, flow, {alike[name][0]: label for name, label in labels.items()})
    return True


def _find_done(context: TurnContext, dact: Dact) -> BaseFlow | None:
    acted = {note.flow_id for note in context.state.effects if note.is_done}
    done = (flow for flow in context.state.completed if flow.flow_id in acted)
    return next((flow for flow in reversed([*done]) if flow.dact == dact), None)


def _corrects(done: BaseFlow, understood: Understanding) -> bool:
    """Return whether a request corrects a completed task, as in “I wanted to go to Milan, not Rome” (RT-12).

    The message must contain correcting words and leave some required values unchanged.
    """
    if Cue.CORRECTS not in understood.cues:
        return False
    changed = changed_slots(done, understood.slots)
    return bool(changed & done.slots.keys()) and bool(done.spec.required - changed)


def _resembles(done: BaseFlow, labels: Labels) -> bool:
    """Return whether a request repeats a required value of a completed task."""
    return bool(done.spec.required & labels.keys() - changed_slots(done, labels))


def start_task(context: TurnContext, dact: Dact, labels: Labels) -> None:
    """Push a flow, or resume the open flow of its type, and fill its slots from the message (FS-9, FS-10).

    If the open flow waits and the message changes nothing, report what the flow waits for. If the stack is
    full, refuse the task.
    """
    stack = context.state.stack
    flow_type = context.world.domain.flows[dact]
    active = stack.active
    was_active = active is not None and active.dact == dact
    if active is not None and not was_active:
        _drop_declined(context, active)
    match stack.push(
        flow_type(context.now),
        context.now,
        reason=f"the user asked for {dact}",
        limit=_limit(context),
        outside_plans=_is_beyond_plan(stack.find(dact), plain_values(labels)),
    ):
        case Pushed(flow, cancelled):
            for other in cancelled:
                context.tell(NoticeKind.MADE_ROOM, flow_id=other.flow_id, done=done_by(context, other))
            enter(context, flow)
        case Existing(flow) if flow.status in PARKED:
            if flow.status == AWAITING_RESULT or not changed_slots(flow, plain_values(labels)):
                _report_waiting(context, flow)
                return
            stop_waiting(context, flow)
        case Existing(flow):
            if not was_active and flow.turn_ids:
                context.tell(NoticeKind.RESUMED, flow_id=flow.flow_id)
            changed = changed_slots(flow, plain_values(labels))
            if changed & flow.slots.keys() or (changed and isinstance(flow, PlanFlow) and flow.rounds):
                correct_flow(context, flow, labels)  # the reply lists the changes
                return
        case LimitReached() as reached:
            _refuse(context, reached, dact, labels)
            return
    fill(context, flow, labels)


def _report_waiting(context: TurnContext, flow: BaseFlow) -> None:
    if flow.status == AWAITING_RESULT:
        report_awaited(context, flow)
        return
    kind = NoticeKind.LOOKING if flow.status == AWAITING_CONTEXT else NoticeKind.STILL_WAITING
    context.tell(kind, flow_id=flow.flow_id)


def _is_beyond_plan(step: BaseFlow | None, values: JsonObject) -> bool:
    """Return whether a request is for a new task rather than a plan's step (PL-8).

    Return True if several required values all differ from the step's values, or if the step has no slots and
    is not due.
    """
    if step is None or step.plan_id is None:
        return False
    if step.status == PLANNED and not step.spec.slots:
        return True
    named = step.spec.required & values.keys() & step.slots.keys()
    return len(named) >= _MANY and all(step.value(name) != values[name] for name in named)


def _drop_declined(context: TurnContext, active: BaseFlow) -> None:
    """Cancel the active task if the user declined its offer, so that the offer isn't repeated."""
    question = context.state.ambiguity.current
    declined = question is not None and question.about.declined and active.plan_id is None
    if declined and question is not None and question.flow_id == active.flow_id:
        cancel(context, active)


def _limit(context: TurnContext) -> DepthLimit | None:
    section = context.world.domain.config.flow_management
    if section.max_stack_depth is None:
        return None
    return DepthLimit(section.max_stack_depth, OnLimit(section.on_limit_reached))


def _refuse(context: TurnContext, reached: LimitReached, wanted: Dact, labels: Labels) -> None:
    """Refuse a task because the stack is full (FS-12).

    Depending on the domain's configuration, ask which task to stop or tell the user to finish a task first.
    """
    active = context.state.stack.active
    if reached.strategy is OnLimit.ASK_USER:
        follow_up: JsonObject = {"then": wanted, "slots": plain_values(labels)}
        options = tuple(
            Option(say("stop", doing=name_doing(flow)), "cancel_flow", {"flow_id": flow.flow_id, **follow_up})
            for flow in reached.choices
        )
        understood = context.changes.understanding
        said = understood.text if understood is not None and not understood.is_click else ""
        request = said or name_task(context.world.domain.flows[wanted])
        question = ChooseToStop(options=options, request=request)
        context.state.ambiguity.declare(question)
    else:
        flow_id = active.flow_id if active is not None else None
        context.tell(NoticeKind.LIMIT_REACHED, count=len(reached.choices), flow_id=flow_id)
        context.changes.asks_again = True
    context.changes.carry_on = False
