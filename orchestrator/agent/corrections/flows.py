"""Correct a flow's slot values, and report the changes (IR-4)."""

from __future__ import annotations

from orchestrator.agent.corrections.completed import (
    bound_names,
    effects_made_from,
    follow_correction,
    plan_of,
    reopen_flow,
    reopen_plan,
)
from orchestrator.agent.corrections.settling import ask_about_done
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.tasks import (
    ask_about,
    ask_for_new_value,
    drop_stale_candidate,
    plain_values,
    show_change,
    stop_waiting,
)
from orchestrator.context import TurnContext
from orchestrator.dialogue.base_flow import Labels
from orchestrator.dialogue.changes.correction import (
    Correction,
    correct,
    find_changes,
    find_too_early,
    move_along,
)
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.res.wording import name_slot_of
from orchestrator.types import JsonObject


def changed_slots(flow: BaseFlow, labels: Labels) -> set[str]:
    """Return the names of the slots that a message changes or leaves undecided."""
    decided = plain_values(labels)
    return {name for name in labels if name not in decided or flow.value(name) != decided[name]}


def correct_flow(context: TurnContext, flow: BaseFlow, labels: Labels) -> None:
    """Replace values of a flow on the stack, or of a completed flow, which then runs again.

    Refuse days that are too early. If the flow or its plan has committed effects that used an old value,
    ask the user what to do with them.
    """
    values: JsonObject = {change.slot: change.after for change in find_changes(flow, labels)}
    plan = plan_of(context, flow)
    names = bound_names(plan, flow, values) if plan is not None else {}
    of_plan: JsonObject = {name: values[slot] for slot, name in names.items()}
    early = _find_too_early(context, flow, values) or (
        _find_too_early(context, plan, of_plan) if plan is not None else None
    )
    if early is not None:
        _go_on_without(context, flow, labels, {slot for slot in values if early in {slot, names.get(slot)}})
        return
    is_over = context.state.stack.get(flow.flow_id) is None
    moved = {} if plan is None else move_along(plan, of_plan)
    if moved and len(names) < len(values):  # the other values belong only to this step
        correct_flow(context, flow, {name: label for name, label in labels.items() if name not in names})
        correct_flow(context, flow, {name: label for name, label in labels.items() if name in names})
        return
    if not moved and (along := move_along(flow, values)):
        values, labels = values | along, {**labels, **along}
    effects = effects_made_from(context, flow, values)
    # If the plan owns all corrected values, correct the plan.
    if plan is not None and len(names) == len(values) and (effects or is_over or moved):
        flow, values = plan, of_plan | moved
        labels = {**values}
        is_over = context.state.stack.get(plan.flow_id) is None
    if effects:
        ask_about_done(context, flow, values, effects)
        return
    if is_over:
        flow = reopen_plan(context, flow) if isinstance(flow, PlanFlow) else reopen_flow(context, flow)
    result = correct(flow, labels, turn_id=context.ids.turn_id)
    if result.changed:
        stop_waiting(context, flow)
    drop_stale_candidate(context, flow, labels)
    report_changes(context, flow, result)
    context.changes.carry_on = not ask_about(context, flow, list(result.problems))
    plan = plan_of(context, flow)
    if plan is None or not result.changed:
        return
    names = bound_names(plan, flow, [change.slot for change in result.changed])
    held = {name: flow.slots[slot] for slot, name in names.items()}
    if held and follow_correction(context, plan, held):
        context.changes.carry_on = True


def _find_too_early(context: TurnContext, flow: BaseFlow, days: JsonObject) -> str | None:
    """Return the slot whose day is earlier than allowed, and tell the user.

    Return None if no day is too early.
    """
    found = find_too_early(flow, days)
    if found is None:
        return None
    known = flow.values() | days
    slots: JsonObject = {name: known[name] for name in found}
    context.tell(NoticeKind.TOO_EARLY, flow_id=flow.flow_id, slots=slots)
    return found[0]


def _go_on_without(context: TurnContext, flow: BaseFlow, labels: Labels, refused: set[str]) -> None:
    """Apply the corrections to the slots that are not `refused`.

    If the flow is on the stack and not part of a plan, ask for a new value for a refused slot.
    """
    rest = {slot: label for slot, label in labels.items() if slot not in refused}
    is_single = plan_of(context, flow) is None and context.state.stack.get(flow.flow_id) is not None
    for slot in refused if is_single else ():
        if flow.spec.slots[slot].not_before in rest:
            flow.clear(slot)  # so that the flow asks for a new day instead of moving the old one
    if rest:
        correct_flow(context, flow, rest)
    if is_single and (context.changes.carry_on or not rest):
        ask_for_new_value(context, flow, min(refused))
    elif not rest:
        leave_open(context)


def report_changes(context: TurnContext, flow: BaseFlow, result: Correction) -> None:
    listed = context.state.shown
    chosen = None if listed is None else listed.key  # the next offer displays the chosen row
    changes = [
        show_change(context, flow, change.slot, change.before, change.after)
        for change in result.changed
        if change.slot != chosen
    ]
    if changes:
        context.tell(NoticeKind.CORRECTED, changes=changes)
    cleared = [name for name in result.cleared if (slot := flow.slot(name)) is not None and slot.prompt]
    if cleared:
        context.tell(NoticeKind.CLEARED, names=[name_slot_of(flow, name) for name in cleared])
