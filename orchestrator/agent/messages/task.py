"""Start the task that the user asks for, or carry on the open one of its type (FS-9, FS-10)."""

from __future__ import annotations

import re

from orchestrator.agent.messages.correction import changed_slots, correct_flow
from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import cancel, done_by, enter, fill, plain_values, stop_waiting
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.base_flow import Labels
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import AWAITING_CONTEXT, PARKED
from orchestrator.dialogue.outcomes import DepthLimit, Existing, LimitReached, OnLimit, Pushed
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.specification import Priority
from orchestrator.dialogue.understanding import Understanding
from orchestrator.plans.recipe import BESIDES
from orchestrator.res.wording import name_doing
from orchestrator.types import Dact, JsonObject

_CORRECTING = re.compile(
    r"\b(?:actually|instead|rather|sorry|oops|wrong|mistake|i mean|i meant|i wanted|should|supposed|change|switch"
    r"|correct|not)\b",
    re.IGNORECASE,
)


def take_task(turn: RunningTurn, understood: Understanding) -> None:
    known = [score.dact for score in understood.flows if score.dact in turn.context.world.domain.flows]
    state = turn.changes.state
    if known:
        waiting = state.stack.find(known[0])
        for entry in [
            e for e in state.ambiguity.open if waiting is not None and e.flow_id == waiting.flow_id
        ]:
            if entry.metadata.get("about") == "change":  # whoever asks for the task again wants it as it is
                state.ambiguity.resolve(entry)
        is_one_more = BESIDES.search(understood.text) is not None
        is_new = waiting is None and bool(state.effects) and not (understood.is_click or is_one_more)
        done = _find_done(turn, known[0]) if is_new else None
        if done is not None and _corrects(done, understood):
            correct_flow(turn, done, understood.slots)
            return
        if done is not None and _resembles(done, understood.slots):
            turn.changes.remark(RemarkKind.STAYS, flow_id=done.flow_id, done=done_by(turn, done))
        if not _changes_the_offer(turn, known[0], understood.slots):
            start_task(turn, known[0], understood.slots)
    else:
        be_unsure(turn, understood)


def _changes_the_offer(turn: RunningTurn, dact: Dact, labels: Labels) -> bool:
    """Take a change of "the booking" for one of the booking that is offered, where none that exists is named."""
    flow = turn.changes.state.stack.active if labels and turn.changes.state.ambiguity.open else None
    entry = None if flow is None else turn.changes.state.ambiguity.current
    if flow is None or entry is None or entry.flow_id != flow.flow_id or "candidate" not in entry.metadata:
        return False
    slots = turn.context.world.domain.flows[dact].spec.slots
    made = {name for name, slot in slots.items() if slot.priority is Priority.REQUIRED} & {*flow.spec.outputs}
    alike = {
        name: [one.name for one in flow.spec.slots.values() if one.takes_what(slots[name])] for name in labels
    }
    if not made or made & labels.keys() or any(len(names) != 1 for names in alike.values()):
        return False
    correct_flow(turn, flow, {alike[name][0]: label for name, label in labels.items()})
    return True


def _find_done(turn: RunningTurn, dact: Dact) -> BaseFlow | None:
    """Find the last task of a type that has done something which still stands."""
    acted = {note.flow_id for note in turn.changes.state.effects if note.is_done}
    done = (flow for flow in turn.changes.state.completed if flow.flow_id in acted)
    return next((flow for flow in reversed([*done]) if flow.dact == dact), None)


def _corrects(done: BaseFlow, understood: Understanding) -> bool:
    """Say whether a request changes what was done: "I wanted to go to Milan, not Rome" (RT-12).

    Some of its required values stay, and its words correct.
    """
    if not _CORRECTING.search(understood.text):
        return False
    changed = changed_slots(done, understood.slots)
    required = {name for name, slot in done.spec.slots.items() if slot.priority is Priority.REQUIRED}
    return bool(changed & done.slots.keys()) and bool(required - changed)


def _resembles(done: BaseFlow, labels: Labels) -> bool:
    """Say whether a request names values of what was done: whether it is to stand as well is said before the yes."""
    required = {name for name, slot in done.spec.slots.items() if slot.priority is Priority.REQUIRED}
    return bool(required & labels.keys() - changed_slots(done, labels))


def start_task(turn: RunningTurn, dact: Dact, labels: Labels) -> None:
    """Push a flow, or carry on the one of the same dact, and fill what the message gave (FS-9, FS-10)."""
    context, stack = turn.context, turn.changes.state.stack
    flow_type = context.world.domain.flows[dact]
    active = stack.active
    was_active = active is not None and active.dact == dact
    if active is not None and not was_active:
        _drop_declined(turn, active)
    match stack.push(
        flow_type(context.now), context.now, reason=f"the user asked for {dact}", limit=_limit(turn)
    ):
        case Pushed(flow, cancelled):
            for other in cancelled:
                context.changes.remark(RemarkKind.MADE_ROOM, flow_id=other.flow_id, done=done_by(turn, other))
            enter(turn, flow)
        case Existing(flow) if flow.status in PARKED:
            if not changed_slots(flow, plain_values(labels)):
                looking = flow.status == AWAITING_CONTEXT
                context.changes.remark(
                    RemarkKind.LOOKING if looking else RemarkKind.STILL_WAITING, flow_id=flow.flow_id
                )
                return
            stop_waiting(turn, flow)
        case Existing(flow):
            if not was_active and flow.turn_ids:
                context.changes.remark(RemarkKind.RESUMED, flow_id=flow.flow_id)
            changed = changed_slots(flow, plain_values(labels))
            if changed & flow.slots.keys() or (changed and isinstance(flow, PlanFlow) and flow.rounds):
                correct_flow(turn, flow, labels)  # with other values, or one more: what it changes is said
                return
        case LimitReached() as reached:
            _refuse(turn, reached, dact, labels)
            return
    fill(turn, flow, labels)


def _drop_declined(turn: RunningTurn, active: BaseFlow) -> None:
    """Give up what the user has said no to and wants nothing else of: it would only be offered again."""
    question = turn.changes.state.ambiguity.current
    declined = question is not None and question.metadata.get("declined") and active.plan_id is None
    if declined and question is not None and question.flow_id == active.flow_id:
        cancel(turn, active)


def _limit(turn: RunningTurn) -> DepthLimit | None:
    section = turn.context.world.domain.config.flow_management
    if section.max_stack_depth is None:
        return None
    return DepthLimit(section.max_stack_depth, OnLimit(section.on_limit_reached))


def _refuse(turn: RunningTurn, reached: LimitReached, wanted: Dact, labels: Labels) -> None:
    """A full stack: ask which task to give up, or to finish one first (FS-12)."""
    context, active = turn.context, turn.changes.state.stack.active
    if reached.strategy is OnLimit.ASK_USER:
        follow_up: JsonObject = {"then": wanted, "slots": plain_values(labels)}
        options = [
            Option(f"Stop {name_doing(flow)}", "cancel_flow", {"flow_id": flow.flow_id, **follow_up})
            for flow in reached.choices
        ]
        turn.changes.state.ambiguity.declare(
            Level.PARTIAL, options=options, turn_id=turn.work.turn_id, metadata={"about": "limit"}
        )
    else:
        flow_id = active.flow_id if active is not None else None
        context.changes.remark(RemarkKind.LIMIT_REACHED, count=len(reached.choices), flow_id=flow_id)
        context.changes.asks_again = True
    turn.carry_on = False
