"""Change a plan after an edit or a correction; ask about what was done for good and no longer agrees with it (PL-7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from orchestrator.context import TurnContext
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.changes.plan_steps import add_steps
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.records import BOUND, EffectNote, EffectStatus, PlanStep
from orchestrator.dialogue.slots import SlotSource, SlotValue
from orchestrator.pex.calls.consent import drop_consent
from orchestrator.plans.bindings import Disagreement, find_outdated, read_bindings
from orchestrator.plans.changes import check_consistency, note_revision, stack_plan
from orchestrator.plans.recipe import apply_rules, declared_step
from orchestrator.res.wording import name_doing, name_slot_of, show_slot
from orchestrator.types import FlowId, Json, JsonObject, new_id

KEEP, REPEAT, COMPENSATE = "keep_effect", "repeat_effect", "compensate_effect"
ABOUT_DONE = "correction"
"""About a question what should happen with something that was done for good."""


def set_back(context: TurnContext, flow: BaseFlow) -> None:
    """Make the flow at work a planned step again: its question is closed, nothing is confirmed any more."""
    context.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
    context.changes.state.void_approvals(flow.flow_id)
    drop_consent(context, flow)
    flow.notes.pop(BOUND, None)
    context.changes.state.stack.hold_active(context.now)


def bound_names(plan: PlanFlow, flow: BaseFlow, slots: Collection[str]) -> dict[str, str]:
    """Map slots of the plan, or of one of its sub-flows, to the plan's values that they stand for."""
    if flow is plan:
        return {slot: slot for slot in slots}
    step = plan.step_of(flow.flow_id)
    bindings = read_bindings(step) if step is not None else {}
    names = {slot: bindings[slot].name for slot in slots if slot in bindings and bindings[slot].step is None}
    return {slot: name for slot, name in names.items() if name in plan.spec.slots}


def find_users(plan: PlanFlow, names: Collection[str], *, again: Collection[FlowId] = ()) -> list[PlanStep]:
    """List finished steps that used one of the plan's values, or what such a step, or one done `again`, found."""
    users: list[PlanStep] = []
    for step in plan.steps:
        uses = read_bindings(step).values()
        old = any(b.name in names if b.step is None else b.step in {s.name for s in users} for b in uses)
        if (old or step.flow_id in again) and step.is_done and plan.step_named(step.name) is step:
            users.append(step)
    return users


def effects_of(context: TurnContext, plan: PlanFlow, names: Collection[str]) -> list[EffectNote]:
    """List what steps have done for good with just these values of the plan (RT-12).

    What they have done with something that was found by them may still agree: that is looked at when it
    has been looked up anew.
    """
    users = {
        step.flow_id
        for step in plan.steps
        if step.is_done
        and plan.step_named(step.name) is step
        and any(b.step is None and b.name in names for b in read_bindings(step).values())
    }
    return [note for note in context.changes.state.effects if note.flow_id in users and note.stands]


def follow_correction(
    context: TurnContext, plan: PlanFlow, values: Mapping[str, SlotValue], *, redo: Collection[FlowId] = ()
) -> bool:
    """Take corrected values for the plan's: what was looked up with the old ones is looked up anew (PL-7).

    What has had an effect is not repeated, but for the flows in `redo`, about which the user has decided.
    Returns whether the plan goes on by itself now.
    """
    for name, held in values.items():
        plan.follow(name, held)
        for dependent in plan.dependents(name):
            if dependent not in values:
                plan.clear(dependent)
    if plan.is_finished or not plan.rounds:
        return False
    check_consistency(context, plan)
    acted = {note.flow_id for note in context.changes.state.effects if note.stands}
    users = find_users(plan, values, again=redo)
    stale = [step for step in users if step.flow_id not in acted or step.flow_id in redo]
    at_work = context.changes.state.stack.active
    if at_work is not None and at_work.plan_id == plan.flow_id:
        corrected = bound_names(plan, at_work, at_work.slots.keys())
        for name, held in [*at_work.slots.items()]:
            if held.source is SlotSource.INHERITED or corrected.get(name) in values:
                at_work.clear(name)
        set_back(context, at_work)
    fresh = [replace(step.carried_out_by(FlowId(new_id("flow")), step.dact), outputs={}) for step in stale]
    add_steps(plan, fresh, after=())
    for change in apply_rules(plan, context, context.world.domain.config.plans.max_sub_flows):
        note_revision(context, plan, change.kind.value, change.why)
    stack_plan(context, plan)
    if fresh:
        context.changes.plans.in_doubt = True
        note_revision(
            context, plan, "expand", f"{', '.join(sorted(values)) or 'what was done'} was corrected"
        )
    return True


def ask_about_outdated(context: TurnContext, plan: PlanFlow) -> bool:
    """Ask what should happen with what steps have done for good and the plan has other values for now (PL-7).

    Nothing is carried out before the user has decided. Returns whether it asks.
    """
    state = context.changes.state
    outdated = find_outdated(plan, state.effects)
    if state.stack.plan is not plan or plan.is_finished or not outdated:
        return False
    effects = [note for note in state.effects if note.flow_id in outdated and note.stands]
    payload: JsonObject = {"flow_id": plan.flow_id, "steps": list(outdated)}
    shown: list[JsonObject] = [_show(context, plan, one) for found in outdated.values() for one in found]
    why = "; ".join(str(one) for found in outdated.values() for one in found)
    context.log.failed_check("plans", "effects_agree", why, plan.flow_id)
    again = "" if all("why" in one for one in shown) else " and do it again as the plan is now"
    ask_what_should_happen(context, payload, effects, shown, again=again, later=True)
    return True


def _show(context: TurnContext, plan: PlanFlow, found: Disagreement) -> JsonObject:
    """Show the value that was used and the one that the plan has now, or why it would not be done any more."""
    step = plan.step_named(found.step)
    assert step is not None
    spec = context.world.domain.flows[step.dact]
    if found.slot not in spec.spec.slots:
        declared = declared_step(plan, found.step)
        return {"why": declared.otherwise if declared is not None else "it is not called for"}

    def say(value: Json) -> Json:
        rows = (listed.name(value) for listed in context.changes.state.displayed if listed.key == found.slot)
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
    again: str,
    once_more: str = "",
    later: bool = False,
) -> None:
    """Tell what was done for good with other values; the user decides what becomes of it (RT-12).

    Args:
        context: of the turn that asks.
        payload: what each of the options carries, with the `flow_id` of what is to be carried out anew.
        effects: what was done.
        changes: name, old and new value, as they are shown.
        again: what would be done when it has been undone, in words.
        once_more: with what it would be done besides, in words.
        later: it was found out after the change that led to it.
    """
    options = [Option("Leave it as it is", KEEP, payload)]
    if payload.get("changes") == {}:  # nothing is wanted otherwise, so nothing is to be done again
        options += [option for note in effects if (option := _offer_to_undo(context, note)) is not None]
    elif all(note.compensation is not None for note in effects):
        options.append(Option(f"Undo it{again}", COMPENSATE, payload))
    plan = context.changes.state.stack.plan
    if plan is not None and plan.flow_id == payload["flow_id"]:
        options.append(Option(f"Stop {name_doing(plan)}", "cancel_flow", {"flow_id": plan.flow_id}))
    else:
        options.append(Option(f"Do it once more{once_more}", REPEAT, payload))
    asked: JsonObject = {
        "done": [note.summary for note in effects if note.status is not EffectStatus.UNKNOWN],
        "unknown": [note.summary for note in effects if note.status is EffectStatus.UNKNOWN],
        "changes": list(changes),
        "later": later,
    }
    context.changes.state.ambiguity.declare(
        Level.PARTIAL,
        options=options,
        turn_id=context.ids.turn_id,
        metadata={"about": ABOUT_DONE, "shown": asked},
    )


def _offer_to_undo(context: TurnContext, note: EffectNote) -> Option | None:
    """Offer the task that undoes what was done, which asks before it does so."""
    known = {**note.slots, **note.arguments, **note.result}
    for dact, flow_type in context.world.domain.flows.items():
        if any(use.tool_id == note.compensation for use in flow_type.spec.tools):
            slots: JsonObject = {name: known[name] for name in flow_type.spec.slots if name in known}
            return Option("Undo it", "choose_flow", {"dact": dact, "slots": slots})
    return None
