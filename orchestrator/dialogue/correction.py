"""Corrections: replacing values that were given before, and what hangs on them (IR-4).

Nothing is undone or repeated here: when an old value has already had an effect, the correction
says so and leaves the decision to the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from orchestrator.dialogue.ambiguity import Option, show_value
from orchestrator.dialogue.flow import BaseFlow, Labels, SlotProblem
from orchestrator.dialogue.json_values import same_value
from orchestrator.dialogue.records import EffectNote, EffectStatus
from orchestrator.dialogue.understanding import Mention
from orchestrator.dialogue.validation import Rejected
from orchestrator.types import FlowId, Json, TurnId

REOPENED = "reopened"
"""The note of a flow that is carried out anew, after a correction: the completed flow that it stands for."""


@dataclass(frozen=True, slots=True)
class Change:
    """One slot's old and new value."""

    slot: str
    before: Json
    after: Json


@dataclass(frozen=True, slots=True)
class Correction:
    """What a correction did, or would do.

    When `effects` is not empty nothing was changed: `question` and `options` are to be put to the
    user, and `apply_changes` carries the changes out once that is decided.
    """

    flow: BaseFlow
    changed: tuple[Change, ...] = ()
    in_doubt: tuple[str, ...] = ()
    """Dependent slots that kept their values; worth mentioning."""
    cleared: tuple[str, ...] = ()
    """Dependent slots that no longer held and are empty now."""
    problems: tuple[SlotProblem, ...] = ()
    effects: tuple[EffectNote, ...] = ()
    question: str = ""
    options: tuple[Option, ...] = field(default=())

    @property
    def needs_decision(self) -> bool:
        return bool(self.effects)


def correct(
    flow: BaseFlow,
    changes: Labels,
    *,
    effects: Iterable[EffectNote] = (),
    turn_id: TurnId | None = None,
    now: float = 0.0,
    flow_id: str | None = None,
) -> Correction:
    """Replace values of a flow; dependent slots that no longer hold are cleared (IR-4).

    Values that do not fit are in `problems` and change nothing. If a finished effect was made from
    one of the old values, nothing is changed at all and the user has to decide. A finished flow is
    history: the result's `flow` is then a fresh one (with `flow_id`, if given), to be pushed.
    """
    mentions = {
        name: label if isinstance(label, Mention) else Mention(label) for name, label in changes.items()
    }
    problems = [problem for name, mention in mentions.items() if (problem := flow.examine(name, mention))]
    failed = {problem.slot for problem in problems}
    fitting = {name: mention for name, mention in mentions.items() if name not in failed}
    changed = tuple(_find_changes(flow, fitting))
    touched = _find_effects(flow, changed, effects)
    if touched:
        question, options = _put_to_user(flow, changed, touched)
        return Correction(flow, changed, (), (), tuple(problems), touched, question, options)
    if flow.is_finished and changed:
        flow = reopen(flow, now, flow_id=flow_id)
    in_doubt, cleared = apply_changes(flow, fitting, turn_id=turn_id) if changed else ((), ())
    return Correction(flow, changed, in_doubt, cleared, tuple(problems))


def _find_changes(flow: BaseFlow, mentions: Mapping[str, Mention]) -> Iterable[Change]:
    for name, mention in mentions.items():
        verdict = flow.judge(name, mention.value)
        before = flow.value(name)
        if not isinstance(verdict, Rejected) and not same_value(before, verdict.value):
            yield Change(name, before, verdict.value)


def _find_effects(
    flow: BaseFlow, changed: tuple[Change, ...], effects: Iterable[EffectNote]
) -> tuple[EffectNote, ...]:
    names = {change.slot for change in changed}
    return tuple(
        note for note in effects if note.flow_id == flow.flow_id and note.stands and names & note.slots.keys()
    )


def apply_changes(
    flow: BaseFlow, changes: Labels, *, turn_id: TurnId | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the new values; returns the dependent slots that are in doubt, and those that were cleared.

    A slot that is itself among the changes is neither. What was confirmed before and depends on a
    changed value has to be confirmed again.
    """
    before = {name: flow.value(name) for name in changes}
    flow.fill_slots_by_label(changes, turn_id=turn_id)
    altered = [name for name in changes if not same_value(before[name], flow.value(name))]
    affected = {name for changed in altered for name in flow.dependents(changed)} - set(changes)
    held = [name for name in flow.spec.slots if name in affected and name in flow.slots]
    cleared = tuple(name for name in held if not flow.still_holds(name))
    in_doubt = tuple(name for name in held if name not in cleared)
    for name in cleared:
        flow.clear(name)
    for name in in_doubt:
        flow.slots[name].confirmed = False
    return in_doubt, cleared


def _describe_effect(note: EffectNote, changed: tuple[Change, ...]) -> str:
    used = [
        f"{change.slot.replace('_', ' ')} {show_value(note.slots[change.slot])}"
        for change in changed
        if change.slot in note.slots
    ]
    done = note.summary.rstrip(".") or note.tool_id.replace("_", " ")
    if note.status is EffectStatus.UNKNOWN:
        return f"I cannot tell whether this was done, with {' and '.join(used)}: {done}."
    return f"This was done already, with {' and '.join(used)}: {done}."


def _put_to_user(
    flow: BaseFlow, changed: tuple[Change, ...], effects: tuple[EffectNote, ...]
) -> tuple[str, tuple[Option, ...]]:
    told = " ".join(_describe_effect(note, changed) for note in effects)
    wished = " and ".join(f"{change.slot.replace('_', ' ')} {show_value(change.after)}" for change in changed)
    payload = {"flow_id": flow.flow_id, "changes": {change.slot: change.after for change in changed}}
    options = [
        Option("Leave it as it is", "keep_effect", payload),
        Option(f"Do it once more, with {wished}", "repeat_effect", payload),
    ]
    if all(note.compensation is not None for note in effects):
        options.insert(1, Option(f"Undo it and do it with {wished}", "compensate_effect", payload))
    return f"{told} What should happen now that it is to be {wished}?", tuple(options)


def reopen(flow: BaseFlow, now: float, *, flow_id: str | None = None) -> BaseFlow:
    """A fresh flow with the values of a completed one, to be corrected and carried out again.

    The completed flow stays as it was; it is history.
    """
    fresh = type(flow)(now) if flow_id is None else type(flow)(now, flow_id=FlowId(flow_id))
    fresh.slots = deepcopy(flow.slots)
    fresh.notes[REOPENED] = flow.flow_id
    return fresh
