"""Share what all policies of the domain do: settle which table is meant, ask back with a choice, make frames."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from domains.analytics.catalogue import TABLES, tables_with
from orchestrator import (
    BasePolicy,
    Ending,
    Execution,
    Failed,
    FailureCategory,
    Frame,
    JsonObject,
    Level,
    NeedsInput,
    Option,
    RemarkKind,
    SlotSource,
)

MOST_OFFERED = 24
_OF_A_QUESTION = ("column", "by", "condition", "value", "function")
_OF_NUMBERS = frozenset({"compare", "find_outliers", "aggregate", "chart"})
"""Flows whose column is one of numbers, as far as they ask for it."""


class TablePolicy(BasePolicy):
    """Settles the table before the task is reviewed, and makes frames of what the tools found."""

    async def review(self, run: Execution) -> Ending | None:
        if run.flow.plan_id is None:  # a plan's step has its table from the plan
            _settle_table(run)
            _settle_column(run)
        ending = await super().review(run)
        if ending is None and run.flow.spec.confirm and run.flow.plan_id is None and not _has_table(run):
            return _ask_for_another_table(run, f"There is no table '{run.value('table')}'.")
        _offer_choices(run)
        return ending

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        """Ask again for a table that nobody knows, whatever else was said."""
        if names_no_table(run, failure):
            return _ask_for_another_table(run, failure.message)
        ending = await super().recover(run, failure)
        _offer_choices(run)
        return ending

    def outputs(self, run: Execution) -> JsonObject:
        """Give, besides what the tools gave, the question as it was meant, for one that goes on from it."""
        found = super().outputs(run)
        if "question" in self.spec.outputs:
            held = run.flow.slots
            found["question"] = {name: held[name].value for name in _OF_A_QUESTION if name in held}
        return found

    def frame(self, run: Execution) -> Frame:
        frame, data = super().frame(run), run.data
        frame.code = data.get("code")
        if "chart" in data:
            frame.display_type, frame.data, frame.chart_type = "chart", data["chart"], data["chart_kind"]
            frame.display_name, frame.rows, frame.warning = data["title"], None, None
        elif "rows" in data:
            frame.display_type, frame.data = "table", data["rows"]
            frame.rows, frame.table_id, frame.warning = data["row_count"], data.get("table_id"), None
        return frame


def own_columns(run: Execution) -> Mapping[str, Collection[str]]:
    """Give the tables that the session has made or changed, with their columns."""
    registry = run.context.world.registry
    return {name: registry.tables.get(name, ()) for name in registry.own.get("table", ())}


def ask(run: Execution, slot: str) -> NeedsInput:
    """Make a slot that became necessary the open question."""
    flow_id, turn_id = run.flow.flow_id, run.context.ids.turn_id
    run.context.changes.state.ambiguity.declare(Level.SPECIFIC, flow_id=flow_id, slot=slot, turn_id=turn_id)
    _offer_choices(run)
    return NeedsInput()


def names_no_table(run: Execution, failure: Failed) -> bool:
    """Check whether a flow failed because nobody knows its table."""
    return failure.category is FailureCategory.NOT_FOUND and not _has_table(run)


def _has_table(run: Execution) -> bool:
    table = run.value("table")
    return table is None or table in TABLES or table in own_columns(run)


def _ask_for_another_table(run: Execution, why: str) -> NeedsInput:
    category = FailureCategory.NOT_FOUND.value
    run.context.changes.remark(RemarkKind.FAILED, dact=run.flow.dact, category=category, message=why)
    run.flow.clear("table")
    return ask(run, "table")


def _offer_choices(run: Execution) -> None:
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


def _settle_table(run: Execution) -> None:
    """Choose the table by the columns and values named, when none is said or the last one does not fit.

    Only the catalogue's names are judged; a table that the user has changed may have others.
    """
    held = run.flow.slots.get("table")
    inherited = held is not None and held.source is SlotSource.INHERITED and held.value in TABLES
    if "table" not in run.flow.spec.slots or not (held is None or inherited):
        return
    own = {name for columns in own_columns(run).values() for name in columns}
    said = [name for name in _names_said(run) if name not in own]
    fitting = tables_with(said) if said else []
    if not said or (held is not None and (held.value in fitting or not fitting)):
        return
    run.flow.clear("table")
    if len(fitting) == 1:
        chosen: JsonObject = {"table": fitting[0]}
        run.flow.fill_slots_by_label(chosen, turn_id=run.context.ids.turn_id, source=SlotSource.INHERITED)


def _settle_column(run: Execution) -> None:
    """Take the column that is needed where the table has only one that it could be."""
    for slot in run.flow.missing():
        choices = _choices(run, slot.entity, slot.name) if slot.entity == "column" else []
        if len(choices) == 1:
            only: JsonObject = {slot.name: choices[0]}
            run.flow.fill_slots_by_label(only, turn_id=run.context.ids.turn_id, source=SlotSource.INHERITED)


def _names_said(run: Execution) -> list[str]:
    """List the columns and values that the flow's slots hold."""
    held = [
        run.flow.value(name)
        for name, slot in run.flow.spec.slots.items()
        if slot.entity in {"column", "group"} and run.flow.holds(name)
    ]
    return [str(one) for value in held for one in (value if isinstance(value, list) else [value])]
