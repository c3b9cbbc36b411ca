"""Replace values of a task at work or of a completed one (IR-4)."""

from __future__ import annotations

from collections.abc import Collection

from orchestrator.agent.messages.not_understood import be_unsure
from orchestrator.agent.open_question import is_plain, leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.agent.tasks import (
    ask_about,
    ask_for_new_value,
    ask_what_to_change,
    ask_which_slot,
    drop_stale_candidate,
    enter,
    plain_values,
    shown,
    stop_waiting,
    tell_changes,
)
from orchestrator.dialogue.base_flow import Labels
from orchestrator.dialogue.changes.correction import (
    apply_changes,
    correct,
    find_changes,
    find_too_early,
    move_along,
    reopen,
)
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.lifecycle import PARKED
from orchestrator.dialogue.records import EffectNote
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.slots import SlotSource, SlotValue
from orchestrator.dialogue.understanding import Understanding
from orchestrator.pex.calls.compensate import undo_before
from orchestrator.plans.bindings import settle
from orchestrator.plans.edits import (
    COMPENSATE,
    KEEP,
    REPEAT,
    ask_what_should_happen,
    bound_names,
    effects_of,
    follow_correction,
)
from orchestrator.res.wording import name_slot_of
from orchestrator.types import JsonObject

DECISIONS = frozenset({KEEP, REPEAT, COMPENSATE})
PROPOSED = "proposed"
"""Of the question about what was done: the decision that a yes means."""


def changed_slots(flow: BaseFlow, labels: Labels) -> set[str]:
    """Name the slots for which a message gives another value than they hold, or one that is not decided."""
    decided = plain_values(labels)
    return {name for name in labels if name not in decided or flow.value(name) != decided[name]}


def _plan_of(turn: RunningTurn, flow: BaseFlow) -> PlanFlow | None:
    """Find the plan that a flow is, or serves, or has served; one that was taken up again before the ended one."""
    if isinstance(flow, PlanFlow):
        return flow
    known = [*reversed(turn.changes.state.stack.flows), *reversed(turn.changes.state.completed)]
    plans = [one for one in known if isinstance(one, PlanFlow)]
    return next((one for one in plans if one.flow_id == flow.plan_id or one.step_of(flow.flow_id)), None)


def _effects_made_from(turn: RunningTurn, flow: BaseFlow, names: Collection[str]) -> list[EffectNote]:
    """List what was done for good with these values: by the flow, and by steps of its plan.

    A flow that is over would do all of it once more.
    """
    is_over = turn.changes.state.stack.get(flow.flow_id) is None
    plan = _plan_of(turn, flow)
    steps = effects_of(turn.context, plan, set(bound_names(plan, flow, names).values())) if plan else []
    own = [
        note
        for note in turn.changes.state.effects
        if note.flow_id == flow.flow_id
        and note.stands
        and (is_over or set(names) & note.slots.keys())
        and note not in steps
    ]
    return [*own, *steps]


def _ask_what_should_happen(
    turn: RunningTurn, flow: BaseFlow, values: JsonObject, effects: list[EffectNote]
) -> None:
    """Ask before anything is changed what should become of what was done with the old values (RT-12)."""
    wished = " and ".join(str(shown(turn, flow, name, value)) for name, value in values.items())
    payload: JsonObject = {"flow_id": flow.flow_id, "changes": values}
    changes = _show_changes(turn, flow, values)
    ask_what_should_happen(
        turn.context,
        payload,
        effects,
        changes,
        again=f" and do it again with {wished}",
        once_more=f" with {wished}" if values else "",
    )
    turn.carry_on = False


def _show_changes(turn: RunningTurn, flow: BaseFlow, values: JsonObject) -> list[JsonObject]:
    return [
        {
            "name": name_slot_of(flow, name),
            "old": None if flow.value(name) is None else shown(turn, flow, name, flow.value(name)),
            "new": shown(turn, flow, name, value),
        }
        for name, value in values.items()
    ]


def decide(turn: RunningTurn, name: str) -> None:
    """Carry out what the user chose about what was done; which changes were wanted, the open question remembers."""
    payload = _find_payload(turn, name)
    if payload is None:
        turn.changes.remark(RemarkKind.OVER)
        leave_open(turn)
        return
    flow = _find(turn, payload["flow_id"])
    plan = None if flow is None else _plan_of(turn, flow)
    if name == KEEP or flow is None:
        for step in [plan.step_of(done) for done in payload.get("steps", ())] if plan is not None else ():
            if plan is not None and step is not None:
                settle(plan, step)
        turn.changes.remark(RemarkKind.STAYS)
        turn.carry_on = turn.changes.state.stack.active is not None
    elif "steps" in payload and plan is not None:
        undo_before(plan, *payload["steps"])
        turn.carry_on = follow_correction(turn.context, plan, {}, redo=payload["steps"])
    elif plan is not None and name == COMPENSATE:
        _redo_in_plan(turn, plan, flow, payload["changes"])
    else:
        done = _effects_made_from(turn, flow, payload["changes"].keys())
        fresh = repeat_with_changes(turn, flow, payload["changes"])
        if name == COMPENSATE:
            undo_before(fresh, *(note.flow_id for note in done))


def _redo_in_plan(turn: RunningTurn, plan: PlanFlow, flow: BaseFlow, values: JsonObject) -> None:
    """Undo what steps of a plan have done with the old values, and do it again with others; the rest stays as it is."""
    done = [note.flow_id for note in _effects_made_from(turn, flow, values)]
    turn.changes.remark(RemarkKind.CORRECTED, changes=_show_changes(turn, flow, values))
    names = bound_names(plan, flow, values)
    if turn.changes.state.stack.get(plan.flow_id) is None:
        plan = _take_up(turn, plan)
    for step in [step for step in plan.steps if step.flow_id in done]:
        # What the plan has nothing for is the step's own from now on.
        for slot in values.keys() - names.keys():
            step.bind(slot, {"value": values[slot]})
    held = {
        names[slot]: SlotValue(value, SlotSource.USER, turn.work.turn_id)
        for slot, value in values.items()
        if slot in names
    }
    undo_before(plan, *done)
    turn.carry_on = follow_correction(turn.context, plan, held, redo=done)


def _take_up(turn: RunningTurn, ended: PlanFlow) -> PlanFlow:
    """Put a plan that has ended on the stack once more, with what its steps have done."""
    plan = _reopen(turn, ended)
    assert isinstance(plan, PlanFlow)
    plan.take_up(ended)
    return plan


def _find_payload(turn: RunningTurn, name: str) -> JsonObject | None:
    """Find what the open option carries, unless a click names another one; closes the question."""
    clicked: JsonObject = (turn.work.input.action or {}).get("payload") or {}
    for entry in list(turn.changes.state.ambiguity.open):
        for option in entry.options:
            if option.action_name == name and clicked in ({}, option.payload):
                turn.changes.state.ambiguity.resolve(entry)
                return option.payload
    return None


def _find(turn: RunningTurn, flow_id: str) -> BaseFlow | None:
    known = [*turn.changes.state.stack.flows, *turn.changes.state.completed]
    return next((flow for flow in known if flow.flow_id == flow_id), None)


def correct_flow(turn: RunningTurn, flow: BaseFlow, labels: Labels) -> None:
    """Replace values of a flow on the stack, or of a completed one, which is then carried out anew.

    What was done for good with an old value, by the flow or in its plan, is never passed over: the user decides.
    """
    values: JsonObject = {change.slot: change.after for change in find_changes(flow, labels)}
    plan = _plan_of(turn, flow)
    names = bound_names(plan, flow, values) if plan is not None else {}
    of_plan: JsonObject = {name: values[slot] for slot, name in names.items()}
    early = _find_too_early(turn, flow, values) or (
        _find_too_early(turn, plan, of_plan) if plan is not None else None
    )
    if early is not None:
        _go_on_without(turn, flow, labels, {slot for slot in values if early in {slot, names.get(slot)}})
        return
    is_over = turn.changes.state.stack.get(flow.flow_id) is None
    moved = {} if plan is None else move_along(plan, of_plan)
    if moved and len(names) < len(values):  # the rest concerns this step alone
        correct_flow(turn, flow, {name: label for name, label in labels.items() if name not in names})
        correct_flow(turn, flow, {name: label for name, label in labels.items() if name in names})
        return
    if not moved and (along := move_along(flow, values)):
        values, labels = values | along, {**labels, **along}
    effects = _effects_made_from(turn, flow, values)
    # Where it concerns all of it, it is the plan's.
    if plan is not None and len(names) == len(values) and (effects or is_over or moved):
        flow, values = plan, of_plan | moved
        labels = {**values}
        is_over = turn.changes.state.stack.get(plan.flow_id) is None
    if effects:
        _ask_what_should_happen(turn, flow, values, effects)
        return
    if is_over:
        flow = _take_up(turn, flow) if isinstance(flow, PlanFlow) else _reopen(turn, flow)
    result = correct(flow, labels, turn_id=turn.work.turn_id)
    if result.changed:
        stop_waiting(turn, flow)
    drop_stale_candidate(turn, flow, labels)
    tell_changes(turn, flow, result)
    turn.carry_on = not ask_about(turn, flow, list(result.problems))
    plan = _plan_of(turn, flow)
    if plan is None or not result.changed:
        return
    names = bound_names(plan, flow, [change.slot for change in result.changed])
    held = {name: flow.slots[slot] for slot, name in names.items()}
    if held and follow_correction(turn.context, plan, held):
        turn.carry_on = True


def _find_too_early(turn: RunningTurn, flow: BaseFlow, days: JsonObject) -> str | None:
    """Name a day that is before the one that it may not be before, and say so."""
    found = find_too_early(flow, days)
    if found is None:
        return None
    known = flow.values() | days
    slots: JsonObject = {name: known[name] for name in found}
    turn.changes.remark(RemarkKind.TOO_EARLY, flow_id=flow.flow_id, slots=slots)
    return found[0]


def _go_on_without(turn: RunningTurn, flow: BaseFlow, labels: Labels, refused: set[str]) -> None:
    """Take what else is corrected; of a single task at work, what was turned away is asked for."""
    rest = {slot: label for slot, label in labels.items() if slot not in refused}
    is_single = _plan_of(turn, flow) is None and turn.changes.state.stack.get(flow.flow_id) is not None
    for slot in refused if is_single else ():
        if flow.spec.slots[slot].not_before in rest:
            flow.clear(slot)  # it is not to be moved along: another day is wanted
    if rest:
        correct_flow(turn, flow, rest)
    if is_single and (turn.carry_on or not rest):
        ask_for_new_value(turn, flow, min(refused))
    elif not rest:
        leave_open(turn)


def repeat_with_changes(turn: RunningTurn, flow: BaseFlow, changes: JsonObject) -> BaseFlow:
    """Carry a completed flow out once more with other values: the user asked for it. Returns the fresh flow."""
    fresh = _reopen(turn, flow)
    apply_changes(fresh, changes, turn_id=turn.work.turn_id)
    turn.carry_on = True
    return fresh


def _reopen(turn: RunningTurn, flow: BaseFlow) -> BaseFlow:
    """Push a fresh flow with the values of a completed one."""
    context = turn.context
    fresh = reopen(flow, context.now)
    turn.changes.state.stack.push(fresh, context.now, reason=f"the user corrected {flow.dact}")
    enter(turn, fresh)
    return turn.changes.state.stack.find(flow.dact) or fresh


def take_correction(turn: RunningTurn, understood: Understanding) -> None:
    """Of the active flow, or of a completed one that `target` names; without values it is asked what changes."""
    flow = find_corrected(turn, understood)
    if flow is None:
        be_unsure(turn, understood)
        return
    decided = {name: mention for name, mention in understood.slots.items() if not mention.is_open}
    undecided = understood.slots.keys() - decided.keys()
    if len(understood.either) > 1:
        ask_which_slot(turn, flow, understood)
    elif not decided and turn.changes.state.stack.get(flow.flow_id) is None:
        be_unsure(turn, understood)
    elif decided or undecided:
        if decided:
            correct_flow(turn, flow, decided)
        if undecided and (turn.carry_on or not decided):
            ask_for_new_value(turn, turn.changes.state.stack.active or flow, min(undecided))
    elif _takes_a_no_back(turn, understood):
        turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
        turn.carry_on = True
    else:
        ask_what_to_change(turn, flow)


def _takes_a_no_back(turn: RunningTurn, understood: Understanding) -> bool:
    """Say whether "sorry, yes, book it" answers what should be changed: nothing, it is offered once more."""
    entry = turn.changes.state.ambiguity.current
    asked = entry is not None and entry.metadata.get("about") == "change"
    return asked and not understood.is_click and is_plain(turn, understood)


def find_corrected(turn: RunningTurn, understood: Understanding) -> BaseFlow | None:
    active = turn.changes.state.stack.active
    top = turn.changes.state.stack.top
    if active is None and top is not None and top.status in PARKED and understood.slots:
        active = top
    target = understood.target
    stacked, done = turn.changes.state.stack.live(), turn.changes.state.completed
    plan = turn.changes.state.stack.plan_of(active) if active is not None else None
    if plan is not None and active is not None and _concerns(plan, active, understood):
        return plan
    if active is not None and target in {None, active.dact, active.flow_id}:
        return active
    named = next((flow for flow in reversed([*done, *stacked]) if target in {flow.dact, flow.flow_id}), None)
    return named or active or turn.changes.state.find_completed()


def _concerns(plan: PlanFlow, flow: BaseFlow, understood: Understanding) -> bool:
    """Say whether values are the plan's: it has slots for them, and is named, or the flow at work has none."""
    labels = understood.slots.keys()
    is_named = [score.dact for score in understood.flows[:1]] == [plan.dact]
    return (
        bool(labels)
        and labels <= plan.spec.slots.keys()
        and (is_named or not labels <= flow.spec.slots.keys())
    )
