"""Share what all policies of the domain do: settle which table is meant, and hand rows over page by page."""

from __future__ import annotations

from domains.analytics.catalogue import TABLES, tables_with
from domains.analytics.clarification import ask, names_no_table, offer_choices, own_columns
from orchestrator import (
    BasePolicy,
    Ending,
    Execution,
    Failed,
    Frame,
    JsonObject,
    NeedsInput,
    RemarkKind,
    SlotSource,
)

_OF_A_QUESTION = ("column", "by", "condition", "value", "function")


class TablePolicy(BasePolicy):
    """Settles the table before the task is reviewed, and makes frames of what the tools found."""

    async def review(self, run: Execution) -> Ending | None:
        if run.flow.plan_id is None:  # a plan's step has its table from the plan
            settle_table(run)
        ending = await super().review(run)
        offer_choices(run)
        return ending

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        """Ask again for a table that nobody knows, whatever else was said."""
        if names_no_table(run, failure):
            category = failure.category.value
            run.context.changes.remark(
                RemarkKind.FAILED, dact=run.flow.dact, category=category, message=failure.message
            )
            run.flow.clear("table")
            return ask(run, "table")
        ending = await super().recover(run, failure)
        if isinstance(ending, NeedsInput):
            offer_choices(run)
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


def settle_table(run: Execution) -> None:
    """Choose the table by the columns and values named, when none is said or the last one does not fit.

    Only the catalogue's names are judged; a table that the user has changed may have others.
    """
    if "table" not in run.flow.spec.slots:
        return
    held = run.flow.slots.get("table")
    if held is not None and (held.source is not SlotSource.INHERITED or held.value not in TABLES):
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


def _names_said(run: Execution) -> list[str]:
    """List the columns and values that the flow's slots hold."""
    slots = run.flow.spec.slots.items()
    held = [
        run.flow.value(name)
        for name, slot in slots
        if slot.entity in {"column", "group"} and run.flow.holds(name)
    ]
    return [str(one) for value in held for one in (value if isinstance(value, list) else [value])]
