"""Policies of Plan flows: why something changed. What is asked about may be in none of the tables, and is said."""

from __future__ import annotations

from typing import ClassVar

from domains.analytics.catalogue import MEASURES_BY_MONTH, nearest_measure, tables_with
from domains.analytics.policy import ask, own_columns
from orchestrator import Ending, Execution, NeedsInput, PlanPolicy, RemarkKind, SlotSource


class ExplainChange(PlanPolicy):
    dact: ClassVar[str | None] = "explain_change"

    async def review(self, run: Execution) -> Ending | None:
        """Settle which column of which table is meant before anything is planned."""
        return _settle_measure(run) or await super().review(run)


def _settle_measure(run: Execution) -> NeedsInput | None:
    """Choose a table that has the column; where none has, the nearest measure that there is, or ask."""
    column = run.value("column")
    if column is None or run.value("table") is not None:
        return None
    own = [name for name, columns in own_columns(run).items() if str(column) in columns]
    fitting = own or tables_with([str(column), "month"])
    if fitting:
        if len(fitting) == 1:
            _take(run, table=fitting[0])
        return None
    near = nearest_measure(str(column))
    if near is None:
        why = f"No table has {column}. By month there are {', '.join(MEASURES_BY_MONTH)}."
        run.context.changes.remark(RemarkKind.INVALID_VALUE, why=why, slot="column")
        run.flow.clear("column")
        return ask(run, "column")
    _take(run, column=near.column, table=near.table)
    why = f"No table has {column}. The nearest there is by month is {near.words}; I look into that."
    run.context.changes.remark(RemarkKind.ASSUMED, why=why)
    return None


def _take(run: Execution, **values: str) -> None:
    run.flow.fill_slots_by_label(values, turn_id=run.context.ids.turn_id, source=SlotSource.DEFAULT)
