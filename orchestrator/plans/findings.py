"""Findings of background flows about a plan, which trigger the replanning check early (PL-2).

The planner decides what a finding changes.
"""

from typing import NamedTuple

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import PlanFlow
from orchestrator.errors import Unavailable
from orchestrator.plans.bindings import resolve
from orchestrator.ports.memory.scratchpad import CAPACITY, Entry, EntryKind
from orchestrator.tools.trifecta import join_labels
from orchestrator.types import Json, is_object

SHORTEST_NAME = 3
LONGEST_FINDING = 300


async def find_news(context: TurnContext, plan: PlanFlow) -> list[str]:
    """Return new findings about the values of the plan and its remaining steps, each only once per plan."""
    scratchpad = context.recall.scratchpad
    if scratchpad is None or all(step.is_finished for step in plan.steps):
        return []
    try:
        entries = await scratchpad.read(
            context.ids.tenant_id, context.ids.session_id, kinds=frozenset({EntryKind.FINDING}), touch=False
        )
    except Unavailable as error:
        context.log.failed_check("agent", "plan_findings", f"{error.code}: {error}", plan.flow_id)
        return []
    seen = plan.findings_seen
    fresh = [entry for entry in entries if entry.entry_id not in seen and entry.at >= plan.started_at]
    if fresh:
        plan.note_seen([entry.entry_id for entry in fresh], CAPACITY)
    inputs = _inputs_of(context, plan)
    names = _names_of(context, plan, inputs)
    news = [entry for entry in fresh if _concerns(entry, {one.slot for one in inputs}, names)]
    for entry in news:
        join_labels(context.state, entry.labels, entry.flow)
    return [_tell(entry) for entry in news]


class _Input(NamedTuple):
    slot: str
    entity: str | None
    value: Json


def _inputs_of(context: TurnContext, plan: PlanFlow) -> list[_Input]:
    """Return the values of the plan and its remaining steps."""
    flows = context.world.domain.flows
    held = [(plan.spec, plan.values())]
    held += [(flows[step.dact].spec, resolve(plan, step)) for step in plan.steps if not step.is_finished]
    return [
        _Input(name, spec.slots[name].entity, value)
        for spec, values in held
        for name, value in values.items()
        if value is not None and name in spec.slots
    ]


def _names_of(context: TurnContext, plan: PlanFlow, inputs: list[_Input]) -> set[str]:
    """Return the names of the inputs' values: as stored, as displayed, and in the user's words."""
    registry = context.world.registry
    names = {name for one in inputs for name in (str(one.value), registry.name(one.entity, one.value))}
    names |= {held.text for held in plan.slots.values()}
    return {name.casefold() for name in names if len(name) >= SHORTEST_NAME and not name.isdigit()}


def _concerns(entry: Entry, slots: set[str], names: set[str]) -> bool:
    """Return whether a finding has a value for one of the slots, or mentions one of the names."""
    data: Json = entry.data
    if is_object(data) and data.keys() & slots:
        return True
    text = (entry.text or "").casefold()
    return any(name in text for name in names)


def _tell(entry: Entry) -> str:
    return (entry.text or str(entry.data))[:LONGEST_FINDING]
