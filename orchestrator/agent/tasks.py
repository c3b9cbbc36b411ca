"""Task operations that several message handlers share."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.agent.handover import request_operator_if_stuck
from orchestrator.context import TurnContext
from orchestrator.dialogue.base_flow import Labels, ProblemKind, SlotProblem
from orchestrator.dialogue.changes.inheritance import inherit
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import PARKED, FlowState, Reason
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import AskSlot, ChangeWhat, ChooseValue, Option
from orchestrator.dialogue.specification import Family, Priority
from orchestrator.dialogue.understanding import Cue, Mention, MessageKind, Source
from orchestrator.pex.calls.consent import drop_consent
from orchestrator.res.wording import name_slot, name_slot_of, show_slot
from orchestrator.saying import Told, say
from orchestrator.types import FlowId, Json, JsonObject

LONGEST_GOAL = 500


def cancel(context: TurnContext, flow: BaseFlow, *, told: bool = True) -> None:
    """Cancel a flow and, if it is a plan, all its steps.

    `told`: True to inform the user, with a list of committed effects.
    """
    state = context.state
    gone = state.stack.cancel(flow)
    for one in gone:
        state.ambiguity.resolve(flow_id=one.flow_id)
    if told:
        context.tell(
            NoticeKind.CANCELLED,
            flow_id=flow.flow_id,
            done=done_by(context, flow),
            awaited=[_name_call(context, one) for one in gone if one.progress.awaits is not None],
        )
    context.changes.carry_on = False


def done_by(context: TurnContext, flow: BaseFlow) -> list[Told]:
    """List the summaries of a flow's committed effects, including those of a plan's steps."""
    own = {flow.flow_id, *(step.flow_id for step in (flow.steps if isinstance(flow, PlanFlow) else ()))}
    return [note.summary for note in context.state.effects if note.flow_id in own and note.is_done]


def put_off(context: TurnContext, *requests: str) -> None:
    """Defer requests until the running task has ended. If no task is running, the requests are due immediately."""
    active = context.state.stack.active
    first = FlowId("") if active is None else context.state.stack.root(active).flow_id
    context.state.put_off(first, *requests)


def report_awaited(context: TurnContext, flow: BaseFlow) -> None:
    """Explain that the flow cannot change while its call is in progress."""
    what = _name_call(context, flow)
    context.tell(NoticeKind.AWAITING, flow_id=flow.flow_id, what=what, message="", again=True)


def _name_call(context: TurnContext, flow: BaseFlow) -> str:
    awaited = flow.progress.awaits
    spec = None if awaited is None else context.world.domain.tools.get(awaited.tool_id)
    return flow.title if spec is None else spec.name


def stop_waiting(context: TurnContext, flow: BaseFlow) -> None:
    """Void a flow's approvals because its values change, and unpark the flow if it is parked (PX-17)."""
    context.state.void_approvals(flow.flow_id)
    if flow.status in PARKED:
        context.state.stack.approve(flow, context.now, reason="the user answered or changed a waiting task")


def enter(context: TurnContext, flow: BaseFlow) -> None:
    """Record that a flow was pushed, and set the goal of a plan."""
    context.state.note_origin(natural=True)
    if isinstance(flow, PlanFlow) and not flow.goal:
        said = context.changes.understanding.text if context.changes.understanding is not None else ""
        flow.pursue((said or context.text)[:LONGEST_GOAL], left_to_planner(context))
    context.log.event("flow_pushed", dact=flow.dact, flow_id=flow.flow_id)


def left_to_planner(context: TurnContext) -> tuple[str, ...]:
    """Return a plan request's words that fit no slot, or () unless a model can plan for them (PL-5)."""
    understood = context.changes.understanding
    if (
        understood is None
        or understood.kind is not MessageKind.TASK
        or understood.source is not Source.SYSTEM2
    ):
        return ()
    flow = context.world.domain.flows.get(understood.flows[0].dact) if understood.flows else None
    may_plan = context.world.domain.config.plans.model != "off"
    is_plan = flow is not None and flow.spec.family is Family.PLAN
    return understood.not_understood if may_plan and is_plan else ()


def fill(context: TurnContext, flow: BaseFlow, labels: Labels) -> None:
    """Fill a flow's slots from a message, and ask about values that don't fit."""
    before = flow.values() if flow.slots.keys() - labels.keys() else None
    mentions = {name: label for name, label in labels.items() if isinstance(label, Mention)}
    left_open = {name for name, one in mentions.items() if one.value is None and one.is_open}
    for name in left_open & flow.slots.keys():
        flow.clear(name)
    decided = {name: label for name, label in labels.items() if name not in left_open}
    problems = flow.fill_slots_by_label(decided, turn_id=context.ids.turn_id)
    if before is not None:
        _clear_derived(flow, {name for name in labels if flow.value(name) != before.get(name)}, labels)
    understood = context.changes.understanding
    if flow.started_at == context.now:
        takes = any(slot.same_as for slot in flow.spec.slots.values())
        refers = takes and understood is not None and Cue.AS_BEFORE in understood.cues
        carried = inherit(context.state, flow, said=labels, refers=refers)
        if carried:
            values = [
                {"name": name_slot_of(flow, name), "value": shown(context, flow, name, flow.value(name))}
                for name in carried
            ]
            context.tell(NoticeKind.CARRIED, values=values)
    drop_stale_candidate(context, flow, labels)
    context.changes.carry_on = not ask_about(context, flow, problems)


def _clear_derived(flow: BaseFlow, changed: set[str], said: Labels) -> None:
    """Clear values that depend on changed values and no longer hold, such as the flight after a change of date."""
    for derived in {derived for name in changed for derived in flow.dependents(name)} - set(said):
        if derived in flow.slots and not flow.still_holds(derived):
            flow.clear(derived)


def drop_stale_candidate(context: TurnContext, flow: BaseFlow, labels: Labels) -> None:
    """Drop the flow's pending call, grant, approvals and questions about them (AM-3, PX-17).

    Do nothing if the message has no slot values (`labels`).
    """
    if not labels:
        return
    drop_consent(context, flow)
    handler = context.state.ambiguity
    for entry in [entry for entry in handler.open if entry.flow_id == flow.flow_id and entry.slot is None]:
        handler.resolve(entry)
    if context.state.approvals:
        context.state.void_approvals(flow.flow_id)


def ask_about(context: TurnContext, flow: BaseFlow, problems: list[SlotProblem]) -> bool:
    """Explain rejected values, and ask about the first problem that is worth a question.

    Return False if there is no such problem.
    """
    for problem in problems:
        if problem.kind is ProblemKind.INVALID:
            context.tell(NoticeKind.INVALID_VALUE, why=problem.why, slot=name_slot(problem.slot))
    first = next((problem for problem in problems if _is_worth_asking(flow, problem)), None)
    if first is None:
        return False
    kind = ChooseValue if first.kind is ProblemKind.SEVERAL else AskSlot
    options = tuple(_value_option(context, flow, first.slot, value) for value in first.candidates)
    question = kind(flow_id=flow.flow_id, slot=first.slot, options=options)
    context.state.ambiguity.declare(question)
    request_operator_if_stuck(context)
    return True


def _is_worth_asking(flow: BaseFlow, problem: SlotProblem) -> bool:
    """Return whether to ask about a value: several values fit, or the flow's slot is not optional."""
    slot = flow.slot(problem.slot)
    if slot is None:
        return False
    return problem.kind is ProblemKind.SEVERAL or slot.priority is not Priority.OPTIONAL


def shown(context: TurnContext, flow: BaseFlow, slot: str, value: Json) -> Json:
    return show_slot(value, flow.slot(slot), context.world.registry, context.local_now)


def show_change(context: TurnContext, flow: BaseFlow, slot: str, before: Json, after: Json) -> JsonObject:
    old, new = shown(context, flow, slot, before), shown(context, flow, slot, after)
    return {"name": name_slot_of(flow, slot), "old": old, "new": new}


def plain_values(labels: Mapping[str, Mention | Json]) -> JsonObject:
    """Return a message's slot values as JSON, without undecided values."""
    values = {name: label.value if isinstance(label, Mention) else label for name, label in labels.items()}
    return {name: value for name, value in values.items() if value is not None}


def _value_option(context: TurnContext, flow: BaseFlow, slot: str, value: Json) -> Option:
    payload = {"flow_id": flow.flow_id, "slot": slot, "value": value}
    listed = context.state.shown
    row = listed.name(value) if listed is not None and listed.key == slot else None
    return Option(row or str(shown(context, flow, slot, value)), "fill_slot", payload)


def ask_what_to_change(context: TurnContext, flow: BaseFlow, *, after_no: bool = False) -> None:
    """Ask which slot to change, and offer to stop. `after_no`: True if the user declined the flow's offer."""
    options = tuple(
        Option(
            say("change", slot=name_slot_of(flow, name)),
            "change_slot",
            {"flow_id": flow.flow_id, "slot": name},
        )
        for name in flow.spec.slots
        if name in flow.slots and flow.spec.slots[name].description
    )
    stop = Option(say("stop", doing=""), "cancel_flow", {"flow_id": flow.flow_id})
    question = ChangeWhat(flow_id=flow.flow_id, options=(*options, stop), after_no=after_no)
    context.state.ambiguity.declare(question)
    context.changes.carry_on = False


def ask_for_new_value(context: TurnContext, flow: BaseFlow, slot: str) -> None:
    """Ask for a new value for a slot. The old value stays until the user answers."""
    context.state.ambiguity.resolve(flow_id=flow.flow_id)
    context.state.ambiguity.declare(AskSlot(flow_id=flow.flow_id, slot=slot))
    context.changes.carry_on = False


def update_stack(context: TurnContext) -> bool:
    """Remove ended flows from the stack. Return True if a pending flow became active and should run."""
    state = context.state
    waiting = {flow.flow_id: flow.status for flow in state.stack.flows}
    _clear_stack(context)
    active = state.stack.active
    before = waiting.get(active.flow_id) if active is not None else None
    going = before is not None and before.state is FlowState.PENDING
    state.keep_going(going=going)
    if active is not None and before is not None and before.reason is Reason.INTERRUPTED:
        context.tell(NoticeKind.BACK_TO, flow_id=active.flow_id)
        context.changes.asks_again = True
    return going


def _clear_stack(context: TurnContext) -> None:
    """Remove finished flows from the stack, and keep completed flows for the answer (RS-1)."""
    state = context.state
    popped = state.stack.pop_finished(context.now)
    for flow in popped:
        context.changes.finished.append(flow)
        state.ambiguity.resolve(flow_id=flow.flow_id)
        if flow.state is FlowState.COMPLETED:
            context.changes.messages.append(flow)
        context.log.event("flow_popped", dact=flow.dact, flow_id=flow.flow_id, **flow.status.serialize())
