"""Tasks that change the result of a completed task, such as moving an appointment (IR-4)."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.agent.tasks import enter, fill
from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.outcomes import LimitReached, Pushed
from orchestrator.dialogue.records import EffectNote
from orchestrator.dialogue.specification import FlowSpec
from orchestrator.types import JsonObject


def start_change(
    context: TurnContext, done: BaseFlow, wanted: JsonObject, effects: Sequence[EffectNote]
) -> bool:
    """Start the task that changes the result of `done`. Return False if no task accepts all wanted values."""
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
    """Return the slot values of the changing flow, or None if a wanted value fits no slot."""
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
