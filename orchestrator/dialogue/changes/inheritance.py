"""Values that a new task inherits: from displayed rows, the same task's last run, and other tasks (FS-7)."""

from __future__ import annotations

from orchestrator.dialogue.base_flow import BaseFlow, Labels
from orchestrator.dialogue.records import Shown
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.specification import Family
from orchestrator.dialogue.state import DialogueState
from orchestrator.dialogue.understanding import Mention
from orchestrator.types import Json, JsonObject


def inherit(state: DialogueState, flow: BaseFlow, *, said: Labels, refers: bool = False) -> list[str]:
    """Fill a starting flow with known values that fit the message.

    For example, a user who searched for flights to Rome and now books a flight from Paris does not want
    Rome's date.

    Return the slots filled from differently named values of other tasks. A flow without confirmation drops
    these values if a model resolved a reference for any open or completed task, or if a required slot stays
    empty and the message does not refer to earlier values.

    Args:
        state: provides displayed rows, completed flows and open tasks.
        flow: the flow to fill.
        said: values in the message, by slot. These slots are not filled, nor are slots that open tasks ask for again.
        refers: True if the message refers to earlier values. They can fill a slot that `said` leaves without a value.
    """
    said = {**dict.fromkeys(_find_asked_again(state)), **said}
    shown = None if state.shown is None else state.find_shown(flow.spec.inputs)
    if shown is not None and shown.rows:
        _take_from_rows(flow, shown, said)
        _take_current_row(state, flow, shown, said)
    _keep_from_last_run(state, flow, said)
    for name in take_inputs(state, flow):
        if name in said or _is_overridden(flow, name, said):
            flow.clear(name)
            continue
        giver = _giver_of(state, name)
        if giver is not None and (_contradicts(flow, giver) or _depends_on_another(flow, name, giver)):
            flow.clear(name)
    to_be_found = {name for name, one in said.items() if refers and isinstance(one, Mention) and one.is_open}
    carried = [
        name
        for name in flow.spec.slots
        if (name not in said or name in to_be_found) and _take_by_another_name(state, flow, name)
    ]
    found_by_model = any(one.progress.refers for one in (*state.stack.flows, *state.completed))
    if not flow.spec.confirm and (found_by_model or not (refers or flow.is_filled())):
        for name in carried:
            flow.clear(name)
        return []
    return carried


def _find_asked_again(state: DialogueState) -> list[str]:
    """Return the slots that open tasks ask for again after an earlier run of the same task."""
    asked = {entry.flow_id: entry.slot for entry in state.ambiguity.open if entry.slot is not None}
    again = (flow for flow in state.stack.flows if flow.flow_id in asked)
    return [asked[flow.flow_id] for flow in again if state.find_completed(flow.dact) is not None]


def take_inputs(state: DialogueState, flow: BaseFlow) -> list[str]:
    """Fill a flow's empty inputs from outputs of completed flows. Return the filled slots.

    Each value comes from the latest flow with that output and is marked as inherited. The slot's type can
    reject it.
    """
    got: list[str] = []
    for name in flow.spec.inputs:
        giver = _giver_of(state, name) if name not in flow.slots else None
        if giver is not None:
            turn_id = giver.turn_ids[-1] if giver.turn_ids else None
            if flow.take(name, giver.outputs[name], SlotSource.INHERITED, turn_id):
                got.append(name)
    return got


def _giver_of(state: DialogueState, name: str) -> BaseFlow | None:
    return next((done for done in reversed(state.completed) if done.outputs.get(name) is not None), None)


def _take_by_another_name(state: DialogueState, flow: BaseFlow, name: str) -> bool:
    """Fill an empty required slot from the latest task with a value named in `same_as`.

    Return False if no task has such a value.
    """
    slot = flow.spec.slots[name]
    if not slot.same_as or name in flow.slots or name not in flow.spec.required:
        return False
    for task in (*reversed(state.stack.flows), *reversed(state.completed)):
        known = {} if task is flow else _known_to(state, task)
        for other in slot.same_as:
            dact, _, own = other.rpartition(".")
            value = known.get(own) if dact in {"", task.dact} else None
            if value is not None and flow.take(name, value, SlotSource.INHERITED):
                return True
    return False


def _known_to(state: DialogueState, task: BaseFlow) -> JsonObject:
    """Return a task's values and results, including the current row if the task displayed it."""
    row = next((shown.current for shown in state.displayed if shown.dact == task.dact), JsonObject())
    return {**task.values(), **row, **task.outputs}


def _take_from_rows(flow: BaseFlow, shown: Shown, said: Labels) -> None:
    """Copy missing required values from the displayed rows that match the flow's required values (IR-5).

    If several rows match, copy only the values that they share.
    """
    required = flow.spec.required
    given = {name: str(held.value).casefold() for name, held in flow.slots.items() if name in required}
    fitting = [
        row
        for row in shown.rows
        if all(str(row.get(name, text)).casefold() == text for name, text in given.items())
    ]
    if fitting and not given.keys().isdisjoint(fitting[0]):
        common = {
            name: value
            for name, value in fitting[0].items()
            if all(row.get(name) == value for row in fitting)
        }
        _take_required(flow, common, said)


def _take_current_row(state: DialogueState, flow: BaseFlow, shown: Shown, said: Labels) -> None:
    """Copy the current row's values to a flow that needs confirmation and takes the row's key.

    Copy nothing if one of the flow's required values contradicts the row, unless the row's value is only a
    default.
    """
    if not flow.spec.confirm or shown.key not in flow.spec.inputs or shown.key in {*flow.slots, *said}:
        return
    giver, required = state.find_completed(shown.dact), flow.spec.required
    differing = {
        name
        for name, held in flow.slots.items()
        if name in required and not _same_text(shown.current.get(name, held.value), held.value)
    }
    if all(giver is not None and _is_default(giver, name) for name in differing):
        _take_required(flow, shown.current, said)


def _is_overridden(flow: BaseFlow, name: str, said: Labels) -> bool:
    group = flow.spec.slots[name].group
    return group is not None and any(
        other in said for other, slot in flow.spec.slots.items() if slot.group == group
    )


def _same_text(one: Json, other: Json) -> bool:
    return str(one).casefold() == str(other).casefold()


def _take_required(flow: BaseFlow, row: JsonObject, said: Labels) -> None:
    required = flow.spec.required
    for name in flow.spec.inputs:
        if name in required and name not in {*flow.slots, *said} and row.get(name) is not None:
            flow.take(name, row[name], SlotSource.INHERITED)


def _keep_from_last_run(state: DialogueState, flow: BaseFlow, said: Labels) -> None:
    """Copy missing values from the last run of the same search if the user states only some values."""
    if flow.spec.family is not Family.READ or flow.spec.confirm or not said or flow.is_filled():
        return
    last = state.find_completed(flow.dact)
    for name, held in last.slots.items() if last is not None else ():
        if name not in flow.slots and name not in said and held.source is not SlotSource.DEFAULT:
            flow.take(name, held.value, SlotSource.INHERITED, held.turn_id)


def _contradicts(flow: BaseFlow, giver: BaseFlow) -> bool:
    """Return whether the user's required values differ from the outputs of `giver`, ignoring its defaults (FS-7)."""
    return any(
        held.source is SlotSource.USER
        and name in flow.spec.required
        and giver.outputs.get(name, held.value) != held.value
        and not _is_default(giver, name)
        for name, held in flow.slots.items()
    )


def _is_default(giver: BaseFlow, name: str) -> bool:
    held, spec = giver.slots.get(name), giver.spec.slots.get(name)
    if held is not None:
        return held.source is SlotSource.DEFAULT
    return spec is not None and spec.default is not None and giver.outputs.get(name) == spec.default


def _depends_on_another(flow: BaseFlow, name: str, giver: BaseFlow) -> bool:
    """Return whether the slot depends on a slot whose value from the user differs from the value that `giver` used."""
    spec = flow.spec.slots.get(name)
    said = [slot for slot in (spec.depends_on if spec else ()) if slot in flow.slots]
    return any(
        flow.slots[slot].source is SlotSource.USER
        and giver.outputs.get(slot, giver.value(slot)) != flow.value(slot)
        for slot in said
    )
