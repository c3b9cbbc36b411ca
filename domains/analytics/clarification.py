"""Ask back which table or which column is meant, with a choice that can be answered by number."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from domains.analytics.catalogue import TABLES
from orchestrator import Execution, Failed, FailureCategory, JsonObject, Level, NeedsInput, Option

MOST_OFFERED = 24
_OF_NUMBERS = frozenset({"compare", "find_outliers", "aggregate"})
"""Flows whose column is one of numbers, as far as they ask for it."""


def own_columns(run: Execution) -> Mapping[str, Collection[str]]:
    """Give the tables that the session has made or changed, with their columns."""
    registry = run.context.world.registry
    return {name: registry.tables.get(name, ()) for name in registry.own.get("table", ())}


def ask(run: Execution, slot: str) -> NeedsInput:
    """Make a slot that became necessary the open question."""
    flow_id, turn_id = run.flow.flow_id, run.context.ids.turn_id
    run.context.changes.state.ambiguity.declare(Level.SPECIFIC, flow_id=flow_id, slot=slot, turn_id=turn_id)
    offer_choices(run)
    return NeedsInput()


def offer_choices(run: Execution) -> None:
    """Let the open question of a flow offer the tables, or the columns of its table, by number."""
    entry = run.context.changes.state.ambiguity.current
    slot = run.flow.slot(entry.slot) if entry is not None and entry.slot is not None else None
    if entry is None or slot is None or entry.flow_id != run.flow.flow_id or entry.options:
        return
    payload: JsonObject = {"flow_id": run.flow.flow_id, "slot": slot.name}
    entry.options = [
        Option(name, "fill_slot", {**payload, "value": [name] if slot.type == "group" else name})
        for name in _choices(run, slot.entity, slot.name)[:MOST_OFFERED]
    ]


def _choices(run: Execution, entity: str | None, slot: str) -> list[str]:
    own, table = own_columns(run), run.value("table")
    if entity == "table":
        return list(dict.fromkeys([*TABLES, *own]))
    if entity != "column" or not isinstance(table, str):
        return []
    if table in own:
        return list(own[table])
    numbers = slot == "column" and run.flow.dact in _OF_NUMBERS
    columns = TABLES[table].columns if table in TABLES else ()
    taken = {str(run.flow.value(name)) for name in run.flow.slots}
    return [one.name for one in columns if (one.is_number or not numbers) and one.name not in taken]


def names_no_table(run: Execution, failure: Failed) -> bool:
    """Check whether a flow failed because nobody knows its table."""
    table = run.value("table")
    known = table is None or table in TABLES or table in own_columns(run)
    return failure.category is FailureCategory.NOT_FOUND and not known
