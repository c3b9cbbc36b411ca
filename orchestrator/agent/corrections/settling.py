"""Ask about side effects that no longer match the slot values or the plan, and apply the answers (RT-12)."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.agent.corrections.completed import (
    bound_names,
    effects_made_from,
    follow_correction,
    plan_of,
    reopen_flow,
    reopen_plan,
)
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.tasks import enter, fill, show_change, shown
from orchestrator.context import TurnContext
from orchestrator.dialogue.changes.correction import apply_changes
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.notice import NoticeKind
from orchestrator.dialogue.questions import Option, SettleDone
from orchestrator.dialogue.questions.deeds import Decision
from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.dialogue.slots import SlotSource, SlotValue
from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.stack import LimitReached, Pushed
from orchestrator.plans.bindings import Disagreement, find_outdated, settle
from orchestrator.plans.recipe import declared_step
from orchestrator.res.languages import word
from orchestrator.res.wording import name_doing, name_slot_of, show_slot
from orchestrator.saying import Told, say
from orchestrator.types import Json, JsonObject


def ask_about_done(
    context: TurnContext, flow: BaseFlow, values: JsonObject, effects: list[EffectNote]
) -> None:
    """Ask what to do about side effects of the old values before changing anything (RT-12).

    Outside plans, if the domain has a task that changes such effects, start that task instead.
    """
    if values and plan_of(context, flow) is None and start_change(context, flow, values, effects):
        return
    wished = [str(shown(context, flow, name, value)) for name, value in values.items()]
    payload: JsonObject = {"flow_id": flow.flow_id, "changes": values}
    changes = show_changes(context, flow, values)
    ask_what_should_happen(
        context,
        payload,
        effects,
        changes,
        undo=say("undo_and_do_again_with", values=wished),
        repeat=say("do_again_with", values=wished) if values else say("do_again"),
    )
    context.changes.carry_on = False


def start_change(
    context: TurnContext, done: BaseFlow, wanted: JsonObject, effects: Sequence[EffectNote]
) -> bool:
    """Start the task that changes the result of the completed flow `done`.

    Its slots get the values of `done`, of the calls in `effects`, and the `wanted` values. Return False if no
    task accepts all wanted values.
    """
    known: JsonObject = done.values() | done.outputs
    for note in effects:
        known |= note.arguments | note.result
    for flow_type in context.world.domain.flows.values():
        values = _fit(flow_type.spec, done, known, wanted) if flow_type.spec.changes == done.dact else None
        if values is not None:
            _start(context, flow_type, values)
            return True
    return False


def _fit(spec: FlowSpec, done: BaseFlow, known: JsonObject, wanted: JsonObject) -> JsonObject | None:
    """Return slot values for a flow of type `spec`, or None if a wanted value fits no slot."""
    values: JsonObject = {name: known[name] for name in spec.slots if known.get(name) is not None}
    for name, value in wanted.items():
        called = {name, f"{done.dact}.{name}"}
        slot = next((one for one in spec.slots.values() if one.name == name or called & {*one.same_as}), None)
        if slot is None:
            return None
        values[slot.name] = value
    return values


def _start(context: TurnContext, flow_type: type[BaseFlow], values: JsonObject) -> None:
    stack = context.state.stack
    pushed = stack.push(flow_type(context.now), context.now, reason="the user changes a completed task")
    assert not isinstance(pushed, LimitReached), "no limit is given"
    if isinstance(pushed, Pushed):
        enter(context, pushed.flow)
    fill(context, pushed.flow, values)


def show_changes(context: TurnContext, flow: BaseFlow, values: JsonObject) -> list[JsonObject]:
    return [show_change(context, flow, name, flow.value(name), value) for name, value in values.items()]


def ask_about_outdated(context: TurnContext, plan: PlanFlow) -> bool:
    """Ask about committed effects that no longer match the plan's values (PL-7).

    Nothing runs before the user has decided. Return True if a question was asked.
    """
    state = context.state
    outdated = find_outdated(plan, state.effects)
    if state.stack.plan is not plan or plan.is_finished or not outdated:
        return False
    effects = [note for note in state.effects if note.flow_id in outdated and note.stands]
    payload: JsonObject = {"flow_id": plan.flow_id, "steps": list(outdated)}
    shown: list[JsonObject] = [_show(context, plan, one) for found in outdated.values() for one in found]
    why = "; ".join(str(one) for found in outdated.values() for one in found)
    context.log.failed_check("plans", "effects_agree", why, plan.flow_id)
    undo = say("undo" if all("why" in one for one in shown) else "undo_and_follow_plan")
    ask_what_should_happen(context, payload, effects, shown, undo=undo, repeat=say("do_again"), later=True)
    return True


def _show(context: TurnContext, plan: PlanFlow, found: Disagreement) -> JsonObject:
    """Return the old value and the plan's value for display, or why the plan no longer needs the step."""
    step = plan.step_named(found.step)
    assert step is not None
    spec = context.world.domain.flows[step.dact]
    if found.slot not in spec.spec.slots:
        declared = declared_step(plan, found.step)
        return {"why": declared.otherwise if declared is not None else word("not_called_for")}

    def say(value: Json) -> Json:
        rows = (listed.name(value) for listed in context.state.displayed if listed.key == found.slot)
        slot = spec.spec.slots.get(found.slot)
        return next(filter(None, rows), None) or show_slot(
            value, slot, context.world.registry, context.local_now
        )

    return {"name": name_slot_of(spec, found.slot), "old": say(found.held), "new": say(found.wanted)}


def ask_what_should_happen(
    context: TurnContext,
    payload: JsonObject,
    effects: Sequence[EffectNote],
    changes: Sequence[JsonObject],
    *,
    undo: Told,
    repeat: Told,
    later: bool = False,
) -> None:
    """Show committed effects that used other values, and ask what to do with them (RT-12).

    Args:
        context: the turn that asks.
        payload: the payload of the options that keep, undo or repeat the effects, with the flow's `flow_id`.
        effects: the committed effects.
        changes: the changed slots' names, with old and new values, as displayed.
        undo: the label for the option that undoes the effects.
        repeat: the label for the option that repeats the effects.
        later: True if the mismatch was discovered after the change.
    """
    options = [Option(say("leave_as_is"), Decision.KEEP.value, payload)]
    if payload.get("changes") == {}:  # without changes, there is nothing to repeat
        options += [option for note in effects if (option := _offer_to_undo(context, note)) is not None]
    elif all(note.compensation is not None for note in effects):
        options.append(Option(undo, Decision.COMPENSATE.value, payload))
    plan = context.state.stack.plan
    if plan is not None and plan.flow_id == payload["flow_id"]:
        options.append(Option(say("stop", doing=name_doing(plan)), "cancel_flow", {"flow_id": plan.flow_id}))
    else:
        options.append(Option(repeat, Decision.REPEAT.value, payload))
    asked: JsonObject = {
        "done": [note.summary for note in effects if note.status is not EffectStatus.UNKNOWN],
        "unknown": [note.summary for note in effects if note.status is EffectStatus.UNKNOWN],
        "changes": list(changes),
        "later": later,
    }
    context.state.ambiguity.declare(SettleDone(options=tuple(options), shown=asked))


def _offer_to_undo(context: TurnContext, note: EffectNote) -> Option | None:
    """Return an option that starts the task that undoes the effect, or None if the domain doesn't have one."""
    known = {**note.slots, **note.arguments, **note.result}
    for dact, flow_type in context.world.domain.flows.items():
        if any(use.tool_id == note.compensation for use in flow_type.spec.tools):
            slots: JsonObject = {name: known[name] for name in flow_type.spec.slots if name in known}
            return Option(say("undo"), "choose_flow", {"dact": dact, "slots": slots})
    return None


def decide(context: TurnContext, name: Decision) -> None:
    """Apply the user's decision about committed effects. If the question was closed, tell the user."""
    payload = _find_payload(context, name)
    if payload is None:
        context.tell(NoticeKind.OVER)
        leave_open(context)
        return
    flow = context.state.find_flow(payload["flow_id"])
    plan = None if flow is None else plan_of(context, flow)
    if name is Decision.KEEP or flow is None:
        for step in [plan.step_of(done) for done in payload.get("steps", ())] if plan is not None else ():
            if plan is not None and step is not None:
                settle(plan, step)
        context.tell(NoticeKind.STAYS)
        context.changes.carry_on = context.state.stack.active is not None
    elif "steps" in payload and plan is not None:
        plan.progress.undo_before(payload["steps"])
        context.changes.carry_on = follow_correction(context, plan, {}, redo=payload["steps"])
    elif plan is not None and name is Decision.COMPENSATE:
        _redo_in_plan(context, plan, flow, payload["changes"])
    else:
        done = effects_made_from(context, flow, payload["changes"].keys())
        fresh = reopen_flow(context, flow)
        apply_changes(fresh, payload["changes"], turn_id=context.ids.turn_id)
        context.changes.carry_on = True
        if name is Decision.COMPENSATE:
            fresh.progress.undo_before(note.flow_id for note in done)


def _redo_in_plan(context: TurnContext, plan: PlanFlow, flow: BaseFlow, values: JsonObject) -> None:
    """Undo the plan's side effects that used the old values, and rerun their steps with the new values."""
    done = [note.flow_id for note in effects_made_from(context, flow, values)]
    context.tell(NoticeKind.CORRECTED, changes=show_changes(context, flow, values))
    names = bound_names(plan, flow, values)
    if context.state.stack.get(plan.flow_id) is None:
        plan = reopen_plan(context, plan)
    for step in [step for step in plan.steps if step.flow_id in done]:
        # The plan has no slots for these values, so bind them to the step.
        for slot in values.keys() - names.keys():
            step.bind(slot, {"value": values[slot]})
    held = {
        names[slot]: SlotValue(value, SlotSource.USER, context.ids.turn_id)
        for slot, value in values.items()
        if slot in names
    }
    plan.progress.undo_before(done)
    context.changes.carry_on = follow_correction(context, plan, held, redo=done)


def _find_payload(context: TurnContext, name: Decision) -> JsonObject | None:
    """Close the question that offers the option `name`.

    Return the option's payload, or None if no question offers it.
    """
    clicked: JsonObject = (context.action or {}).get("payload") or {}
    for entry in list(context.state.ambiguity.open):
        for option in entry.options:
            if option.action_name == name and clicked in ({}, option.payload):
                context.state.ambiguity.resolve(entry)
                return option.payload
    return None
