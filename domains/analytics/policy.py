"""Code shared by policies: choosing a table, asking with options, and frames for tables and charts."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from domains.analytics.catalogue import TABLES
from parley import (
    AskSlot,
    BasePolicy,
    Ending,
    Execution,
    Failed,
    FailureCategory,
    Frame,
    JsonObject,
    NeedsInput,
    NoticeKind,
    Option,
    Recover,
    Recovery,
    SlotSource,
)

SOURCES = ("table", "table_id", "column", "by")
"""Slots that name the table, result or columns to use."""


class TablePolicy(BasePolicy):
    """A base policy for flows that use a table. If the table does not exist, the policy asks for another."""

    async def review(self, run: Execution) -> Ending | None:
        table = run.flow.slots.get("table")
        if table is not None and table.source is not SlotSource.INHERITED:
            run.flow.clear("table_id")  # the user means the table, not the last result
        if "table_id" in self.spec.inputs and not any(run.value(name) for name in SOURCES):
            why = "I don't have any data yet. Name a table, or ask me to show one first."
            return leave(FailureCategory.VALIDATION_ERROR, why)
        ending = await super().review(run)
        _offer_tables(run)
        return ending

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        if failure.category is FailureCategory.NOT_FOUND and not has_table(run):
            category = FailureCategory.NOT_FOUND.value
            run.context.tell(
                NoticeKind.FAILED, dact=run.flow.dact, category=category, message=failure.message
            )
            run.flow.clear("table")
            return ask(run, "table")
        return await super().recover(run, failure)

    def frame(self, run: Execution) -> Frame:
        frame, data = super().frame(run), run.data
        frame.code = data.get("code")
        if "chart_kind" in data:
            frame.display_type, frame.data, frame.chart_type = "chart", data["rows"], data["chart_type"]
            frame.display_name, frame.rows, frame.warning = data["title"], None, None
            frame.table_id = None
        elif "rows" in data:
            frame.display_type, frame.data = "table", data["rows"]
            frame.rows, frame.table_id, frame.warning = data["row_count"], data.get("table_id"), None
        return frame


def saved_tables(run: Execution) -> Mapping[str, Collection[str]]:
    """Return the columns in the user's saved tables, by table."""
    registry = run.context.world.registry
    return {name: registry.tables.get(name, ()) for name in registry.own.get("table", ())}


def ask(run: Execution, slot: str) -> NeedsInput:
    """Ask the user for a slot's value, for example because the table lacks the column that the user named."""
    entry = AskSlot(flow_id=run.flow.flow_id, slot=slot)
    run.context.state.ambiguity.declare(entry)
    _offer_tables(run)
    return NeedsInput()


def leave(category: FailureCategory, why: str) -> Ending:
    """End the flow with a failure, without asking the user."""
    return Recover(Recovery.ESCALATE, Failed(category, why, final=True))


def has_table(run: Execution) -> bool:
    """Return True unless the flow names a table that does not exist."""
    table = run.value("table")
    return table is None or table in TABLES or table in saved_tables(run)


def _offer_tables(run: Execution) -> None:
    """Add the table names as options to this flow's open question about its table."""
    entry = run.context.state.ambiguity.current
    if entry is None or entry.slot != "table" or entry.flow_id != run.flow.flow_id or entry.options:
        return
    payload: JsonObject = {"flow_id": run.flow.flow_id, "slot": "table"}
    names = dict.fromkeys([*TABLES, *saved_tables(run)])
    options = tuple(Option(name, "fill_slot", {**payload, "value": name}) for name in names)
    run.context.state.ambiguity.offer(entry, options)
