"""Replace values of a task at work or of a completed one (IR-4)."""

from __future__ import annotations

from orchestrator.agent.messages.task import (
    ask_about,
    drop_stale_candidate,
    enter,
    plain_values,
    shown,
    stop_waiting,
)
from orchestrator.agent.messages.unknown import be_unsure
from orchestrator.agent.open_question import leave_open
from orchestrator.agent.running import RunningTurn
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.correction import Correction, apply_changes, correct, reopen
from orchestrator.dialogue.flow import BaseFlow, Labels
from orchestrator.dialogue.lifecycle import PARKED
from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.understanding import Understanding
from orchestrator.pex.calls.compensate import undo_before
from orchestrator.plans.edits import follow_correction
from orchestrator.res.wording import name_slot_of
from orchestrator.types import JsonObject

KEEP, REPEAT, COMPENSATE = "keep_effect", "repeat_effect", "compensate_effect"


DECISIONS = frozenset({KEEP, REPEAT, COMPENSATE})


def changed_slots(flow: BaseFlow, labels: Labels) -> set[str]:
    """Name the slots for which a message gives another value than they hold, or one that is not decided."""
    decided = plain_values(labels)
    return {name for name in labels if name not in decided or flow.value(name) != decided[name]}


def _effects_made_from(turn: RunningTurn, flow: BaseFlow, labels: Labels) -> list[EffectNote]:
    changed = {name for name, value in plain_values(labels).items() if flow.value(name) != value}
    return [
        note
        for note in turn.changes.state.effects
        if note.flow_id == flow.flow_id and note.stands and changed & note.slots.keys()
    ]


def _ask_what_should_happen(turn: RunningTurn, result: Correction) -> None:
    """Tell what was done with the old value; nothing is changed until the user decides."""
    turn.changes.state.ambiguity.declare(
        Level.PARTIAL,
        options=_options(turn, result),
        turn_id=turn.work.turn_id,
        metadata={"about": "correction", "shown": _shown_decision(turn, result)},
    )
    turn.carry_on = False


def _options(turn: RunningTurn, result: Correction) -> list[Option]:
    """The three ways out, in words that people use for the values."""
    wished = " and ".join(str(shown(turn, result.flow, c.slot, c.after)) for c in result.changed)
    labels = {
        KEEP: "Leave it as it is",
        COMPENSATE: f"Undo it and do it again with {wished}",
        REPEAT: f"Do it once more with {wished}",
    }
    return [
        Option(labels.get(option.action_name, option.label), option.action_name, option.payload)
        for option in result.options
    ]


def _shown_decision(turn: RunningTurn, result: Correction) -> JsonObject:
    flow = result.flow
    return {
        "done": [note.summary for note in result.effects if note.status is not EffectStatus.UNKNOWN],
        "unknown": [note.summary for note in result.effects if note.status is EffectStatus.UNKNOWN],
        "changes": [
            {
                "name": name_slot_of(flow, change.slot),
                "old": shown(turn, flow, change.slot, change.before),
                "new": shown(turn, flow, change.slot, change.after),
            }
            for change in result.changed
        ],
    }


def decide(turn: RunningTurn, name: str) -> None:
    """Carry out one of the three; which changes were wanted, the open question remembers."""
    payload = _find_payload(turn, name)
    if payload is None:
        turn.changes.remark(RemarkKind.OVER)
        leave_open(turn)
        return
    flow = _find(turn, payload["flow_id"])
    if name == KEEP or flow is None:
        turn.changes.remark(RemarkKind.STAYS)
        turn.carry_on = turn.changes.state.stack.active is not None
    else:
        fresh = repeat_with_changes(turn, flow, payload["changes"])
        if name != REPEAT:
            undo_before(fresh, flow.flow_id)


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
    """Replace values of a flow on the stack, or of a completed one, which is then carried out anew."""
    on_stack = turn.changes.state.stack.get(flow.flow_id) is not None
    if not on_stack and not _effects_made_from(turn, flow, labels):
        flow = _reopen(turn, flow)
        on_stack = True
    result = correct(flow, labels, effects=turn.changes.state.effects, turn_id=turn.work.turn_id)
    if result.needs_decision:
        _ask_what_should_happen(turn, result)
        return
    if result.changed:
        stop_waiting(turn, flow)
    drop_stale_candidate(turn, flow, labels)
    tell_changes(turn, flow, result)
    turn.carry_on = not ask_about(turn, flow, list(result.problems))
    if follow_correction(turn.context, flow, [change.slot for change in result.changed]):
        turn.carry_on = True


def tell_changes(turn: RunningTurn, flow: BaseFlow, result: Correction) -> None:
    listed = turn.changes.state.shown
    chosen = None if listed is None else listed.key  # another row is told by what is offered now
    changes = [
        {
            "name": name_slot_of(flow, change.slot),
            "old": None if change.before is None else shown(turn, flow, change.slot, change.before),
            "new": shown(turn, flow, change.slot, change.after),
        }
        for change in result.changed
        if change.slot != chosen
    ]
    if changes:
        turn.changes.remark(RemarkKind.CORRECTED, changes=changes)
    cleared = [name for name in result.cleared if (slot := flow.slot(name)) is not None and slot.prompt]
    if cleared:
        turn.changes.remark(RemarkKind.CLEARED, names=[name_slot_of(flow, name) for name in cleared])


def ask_what_to_change(turn: RunningTurn, flow: BaseFlow) -> None:
    """Offer the slots of a flow, and to stop it."""
    options = [
        Option(
            f"Change the {name_slot_of(flow, name)}", "change_slot", {"flow_id": flow.flow_id, "slot": name}
        )
        for name in flow.spec.slots
        if name in flow.slots and flow.spec.slots[name].description
    ]
    turn.changes.state.ambiguity.declare(
        Level.PARTIAL,
        flow_id=flow.flow_id,
        options=[*options, Option("Stop", "cancel_flow", {"flow_id": flow.flow_id})],
        turn_id=turn.work.turn_id,
        metadata={"about": "change"},
    )
    turn.carry_on = False


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
    flow = _find_corrected(turn, understood)
    if flow is None:
        be_unsure(turn, understood)
        return
    undecided = {
        name for name, m in understood.slots.items() if m.value is None and not m.candidates and not m.invalid
    }
    if len(understood.either) > 1:
        _ask_which_slot(turn, flow, understood)
    elif undecided:
        _ask_for_new_value(turn, flow, min(undecided))
    elif understood.slots:
        correct_flow(turn, flow, understood.slots)
    elif turn.changes.state.stack.get(flow.flow_id) is not None:
        ask_what_to_change(turn, flow)
    else:
        be_unsure(turn, understood)


def _find_corrected(turn: RunningTurn, understood: Understanding) -> BaseFlow | None:
    active = turn.changes.state.stack.active
    top = turn.changes.state.stack.top
    if active is None and top is not None and top.status in PARKED and understood.slots:
        active = top
    target = understood.target
    if active is not None and target in {None, active.dact, active.flow_id}:
        return active
    done = reversed(turn.changes.state.completed)
    named = next((flow for flow in done if target in {flow.dact, flow.flow_id}), None)
    return named or active or turn.changes.state.find_completed()


def _ask_which_slot(turn: RunningTurn, flow: BaseFlow, understood: Understanding) -> None:
    """The value fits several slots: the user says which, nothing is changed before."""
    value = next(iter(understood.slots.values())).value
    options = [
        Option(
            f"Change the {name_slot_of(flow, name)} to {shown(turn, flow, name, value)}",
            "fill_slot",
            {"flow_id": flow.flow_id, "slot": name, "value": value},
        )
        for name in understood.either
    ]
    turn.changes.state.ambiguity.declare(
        Level.PARTIAL,
        flow_id=flow.flow_id,
        options=options,
        turn_id=turn.work.turn_id,
        metadata={"about": "change"},
    )
    turn.carry_on = False


def _ask_for_new_value(turn: RunningTurn, flow: BaseFlow, slot: str) -> None:
    """The user wants another value and has not said which: the old one stays until there is a new one."""
    turn.changes.state.ambiguity.resolve(flow_id=flow.flow_id)
    turn.changes.state.ambiguity.declare(
        Level.SPECIFIC, flow_id=flow.flow_id, slot=slot, turn_id=turn.work.turn_id
    )
    turn.carry_on = False
