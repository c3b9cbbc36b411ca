"""Corrections: new values for filled slots, and clearing of values that depend on them (IR-4).

The Agent asks the user what to do about side effects of an old value.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from datetime import date

from orchestrator.dialogue.base_flow import Labels, SlotProblem
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.progress import Progress
from orchestrator.dialogue.understanding import Mention
from orchestrator.dialogue.validation import Valid
from orchestrator.types import Json, JsonObject, TurnId, same_value


@dataclass(frozen=True, slots=True)
class Change:
    slot: str
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class Correction:
    """The result of a correction.

    `cleared`: slots emptied because their values may no longer apply. `problems`: rejected values.
    """

    changed: tuple[Change, ...] = ()
    cleared: tuple[str, ...] = ()
    problems: tuple[SlotProblem, ...] = ()


def find_changes(flow: BaseFlow, labels: Labels) -> tuple[Change, ...]:
    """Return the changes that the values in `labels` would cause. Invalid values don't cause changes."""
    mentions = _read_mentions(labels)
    changes: list[Change] = []
    for name, mention in mentions.items():
        found, before = flow.read(name, mention), flow.value(name)
        if isinstance(found, Valid) and not same_value(before, found.value):
            changes.append(Change(name, before, found.value))
    return tuple(changes)


def correct(flow: BaseFlow, labels: Labels, *, turn_id: TurnId | None = None) -> Correction:
    """Replace values of a flow, and clear dependent values that may no longer apply (IR-4).

    Invalid values are reported in the result. Callers must first check whether an old value caused a side
    effect.
    """
    mentions = _read_mentions(labels)
    found = [flow.read(name, mention) for name, mention in mentions.items()]
    problems = [problem for problem in found if isinstance(problem, SlotProblem)]
    failed = {problem.slot for problem in problems}
    fitting = {name: mention for name, mention in mentions.items() if name not in failed}
    changed = find_changes(flow, fitting)
    cleared = apply_changes(flow, fitting, turn_id=turn_id) if changed else ()
    return Correction(changed, cleared, tuple(problems))


def _read_mentions(labels: Labels) -> dict[str, Mention]:
    return {name: label if isinstance(label, Mention) else Mention(label) for name, label in labels.items()}


def apply_changes(flow: BaseFlow, changes: Labels, *, turn_id: TurnId | None = None) -> tuple[str, ...]:
    """Set new values. Return the dependent slots that were cleared; other dependent slots become unconfirmed."""
    before = {name: flow.value(name) for name in changes}
    flow.fill_slots_by_label(changes, turn_id=turn_id)
    altered = [name for name in changes if not same_value(before[name], flow.value(name))]
    affected = {name for changed in altered for name in flow.dependents(changed)} - set(changes)
    held = [name for name in flow.spec.slots if name in affected and name in flow.slots]
    cleared = tuple(name for name in held if not flow.still_holds(name))
    for name in cleared:
        flow.clear(name)
    for name in held:
        if name not in cleared:
            flow.slots[name].confirmed = False
    return cleared


def move_along(flow: BaseFlow, changes: JsonObject) -> JsonObject:
    """Return new dates, by slot, for dates that would precede the new date of their `not_before` slot.

    The number of days between the two dates stays the same. Dates in `changes` are not moved.
    """
    moved: JsonObject = {}
    for name, slot in flow.spec.slots.items():
        first, held = flow.value(slot.not_before or name), flow.value(name)
        new = (moved | changes).get(slot.not_before or name)
        if name not in changes and first and held and new and held < new:
            span = date.fromisoformat(held) - date.fromisoformat(first)
            moved[name] = (date.fromisoformat(new) + span).isoformat()
    return moved


def find_too_early(flow: BaseFlow, changes: JsonObject) -> tuple[str, str] | None:
    """Return a slot whose new date would precede that of its `not_before` slot, with the `not_before` slot, or None."""
    for name, slot in flow.spec.slots.items():
        first = changes.get(slot.not_before or name, flow.value(slot.not_before or name))
        if slot.not_before and first and changes.get(name) and changes[name] < first:
            return name, slot.not_before
    return None


def reopen(flow: BaseFlow, now: float) -> BaseFlow:
    """Return a new flow with the values from a completed flow, which stays unchanged."""
    fresh = type(flow)(now)
    fresh.slots = deepcopy(flow.slots)
    fresh.progress = Progress(reopened_from=flow.flow_id)
    return fresh
