"""What a starting task takes over: from the row that its values name, its own last run, and what tasks found (FS-7)."""

from __future__ import annotations

from orchestrator.dialogue.base_flow import BaseFlow, Labels
from orchestrator.dialogue.slots import SlotSource
from orchestrator.dialogue.specification import Family, Priority
from orchestrator.dialogue.state import DialogueState
from orchestrator.types import JsonObject


def inherit(state: DialogueState, flow: BaseFlow, *, said: Labels) -> None:
    """Give a starting flow what it needs, unless the user speaks of something else.

    Who looked for flights to Rome and now books one from Paris does not want Rome's date. What was
    `said` for a slot stays open where it did not decide.
    """
    if state.shown is not None:
        _take_from_rows(flow, state.shown.rows, said)
    _keep_from_last_run(state, flow, said)
    for name in take_inputs(state, flow):
        if name in said:
            flow.clear(name)
            continue
        giver = _giver_of(state, name)
        if giver is not None and (_contradicts(flow, giver) or _depends_on_another(flow, name, giver)):
            flow.clear(name)


def take_inputs(state: DialogueState, flow: BaseFlow) -> list[str]:
    """Give a flow its declared inputs from completed ones. Returns what it got.

    Each comes from the most recently completed flow that has it as an output, is marked as
    inherited, and never replaces a value or enters a slot whose type turns it away.
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


def _take_from_rows(flow: BaseFlow, rows: list[JsonObject], said: Labels) -> None:
    """Take what is missing from the row that the flow's values name, of those displayed last (IR-5).

    Where they fit several rows, only what all of these say alike.
    """
    given = {
        name: str(held.value).casefold() for name, held in flow.slots.items() if _is_required(flow, name)
    }
    fitting = [
        row
        for row in rows
        if all(str(row.get(name, text)).casefold() == text for name, text in given.items())
    ]
    if not fitting or given.keys().isdisjoint(fitting[0]):
        return
    for name in flow.spec.inputs:
        value = fitting[0].get(name)
        is_missing = name not in flow.slots and name not in said and _is_required(flow, name)
        if is_missing and value is not None and all(row.get(name) == value for row in fitting):
            flow.take(name, value, SlotSource.INHERITED)


def _is_required(flow: BaseFlow, name: str) -> bool:
    slot = flow.spec.slots.get(name)
    return slot is not None and slot.priority is Priority.REQUIRED


def _keep_from_last_run(state: DialogueState, flow: BaseFlow, said: Labels) -> None:
    """Keep what does not change when the user looks for something once more and says only what does."""
    if flow.spec.family is not Family.READ or flow.spec.confirm or not said or flow.is_filled():
        return
    last = state.find_completed(flow.dact)
    for name, held in last.slots.items() if last is not None else ():
        if name not in flow.slots and name not in said and held.source is not SlotSource.DEFAULT:
            flow.take(name, held.value, SlotSource.INHERITED, held.turn_id)


def _contradicts(flow: BaseFlow, giver: BaseFlow) -> bool:
    """Whether the user wants another of what the task cannot do without; a detail may differ (FS-7)."""
    return any(
        held.source is SlotSource.USER
        and _is_required(flow, name)
        and giver.outputs.get(name, held.value) != held.value
        and not _is_default(giver, name)
        for name, held in flow.slots.items()
    )


def _is_default(giver: BaseFlow, name: str) -> bool:
    """Say whether an output is only what a slot has where nobody says anything."""
    held, spec = giver.slots.get(name), giver.spec.slots.get(name)
    if held is not None:
        return held.source is SlotSource.DEFAULT
    return spec is not None and spec.default is not None and giver.outputs.get(name) == spec.default


def _depends_on_another(flow: BaseFlow, name: str, giver: BaseFlow) -> bool:
    """Whether a value was found for other values of the slots that it depends on."""
    spec = flow.spec.slots.get(name)
    said = [slot for slot in (spec.depends_on if spec else ()) if slot in flow.slots]
    return any(
        flow.slots[slot].source is SlotSource.USER
        and giver.outputs.get(slot, giver.value(slot)) != flow.value(slot)
        for slot in said
    )
