"""What policies ask back: which table, which column, offered by number; and what they say is not there."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from domains.analytics.catalogue import TABLES, tables_with
from orchestrator.dialogue.ambiguity import Level, Option
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.errors import FailureCategory
from orchestrator.pex.execution import Execution, Failed, NeedsInput
from orchestrator.types import Json, JsonObject

MOST_OFFERED = 24
_OF_NUMBERS = frozenset({"compare", "find_outliers", "aggregate"})
"""Flows whose column is one of numbers, as far as they ask for it."""


def own_names(run: Execution) -> dict[str, list[str]]:
    """The tables and columns that are the session's own: made, renamed or changed by it."""
    own = run.context.world.registry.own
    return {entity: [name for name in values if name not in TABLES] for entity, values in own.items()}


def own_columns(run: Execution) -> Mapping[str, Collection[str]]:
    """The session's own tables with their columns."""
    registry = run.context.world.registry
    return {name: registry.tables.get(name, ()) for name in registry.own.get("table", ())}


def ask(run: Execution, slot: str) -> NeedsInput:
    """Make a slot that became necessary the open question."""
    run.context.changes.state.ambiguity.declare(
        Level.SPECIFIC, flow_id=run.flow.flow_id, slot=slot, turn_id=run.context.ids.turn_id
    )
    offer_choices(run)
    return NeedsInput()


def offer_choices(run: Execution) -> None:
    """Let the open question of a flow offer the tables, or the columns of its table, by number."""
    entry = run.context.changes.state.ambiguity.current
    slot = run.flow.slot(entry.slot) if entry is not None and entry.slot is not None else None
    if entry is None or slot is None or entry.flow_id != run.flow.flow_id or entry.options:
        return
    names = _choices(run, slot.entity, slot.name)
    payload: JsonObject = {"flow_id": run.flow.flow_id, "slot": slot.name}
    entry.options = [
        Option(name, "fill_slot", {**payload, "value": [name] if slot.type == "group" else name})
        for name in names[:MOST_OFFERED]
    ]


def _choices(run: Execution, entity: str | None, slot: str) -> list[str]:
    own = own_columns(run)
    if entity == "table":
        return list(dict.fromkeys([*TABLES, *own]))
    table = run.value("table")
    if entity != "column" or not isinstance(table, str):
        return []
    if table in own:
        return list(own[table])
    base = TABLES.get(table)
    numbers = slot == "column" and run.flow.dact in _OF_NUMBERS
    columns = (
        [column.name for column in base.columns if not numbers or column.kind == "number"] if base else []
    )
    taken = {str(run.flow.value(name)) for name in run.flow.slots}
    return [name for name in columns if name not in taken]


def names_no_table(run: Execution, failure: Failed) -> bool:
    """Whether a flow failed because nobody knows its table."""
    return failure.category is FailureCategory.NOT_FOUND and not _is_known(run, run.value("table"))


def _is_known(run: Execution, table: Json) -> bool:
    return table is None or table in TABLES or table in own_columns(run)


def tell_unknown_columns(run: Execution) -> None:
    """Say so when no table has a column that was asked for, and no table is known either."""
    if run.value("table") is not None or "table" not in run.flow.spec.slots:
        return
    own = own_names(run).get("column", [])
    for name, slot in run.flow.spec.slots.items():
        said = run.flow.value(name)
        if slot.entity == "column" and isinstance(said, str) and not tables_with([said]) and said not in own:
            why = f"No table has a column {said}."
            run.context.changes.remark(RemarkKind.INVALID_VALUE, why=why, slot=name.replace("_", " "))
            run.flow.clear(name)
