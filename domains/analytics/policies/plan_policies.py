"""Policies of Plan flows: why something changed. What is asked about may be in none of the tables, and is told."""

from __future__ import annotations

import re
from typing import ClassVar

from domains.analytics.catalogue import MEASURES_BY_MONTH, nearest_measure, tables_with
from domains.analytics.conditions import MONTHS
from domains.analytics.policy import fill_category, fill_own_names
from domains.analytics.questions_back import own_columns
from orchestrator.dialogue.ambiguity import Level
from orchestrator.dialogue.remark import RemarkKind
from orchestrator.dialogue.slots import SlotSource
from orchestrator.pex.execution import Ending, Execution, NeedsInput
from orchestrator.plans.policy import PlanPolicy

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_ASKED_ABOUT = re.compile(
    r"\b(?:why (?:did|has|have|was|were|is|are)|happened to|(?:drop|fall|decline|rise|increase|jump|change) (?:in|of)"
    r"|explain why|find out why|made)\s+(?:the |our |my )?([A-Za-z_]+(?: [A-Za-z_]+)??)(?=\s+"
    r"(?:drop|fall|fell|declin|decreas|go|went|sink|sank|los|collaps|ris|rose|increas|gr[eo]w|jump|climb|gain|so|down|up"
    r"|low|high|chang|in|during)\w*\b)",
    re.IGNORECASE,
)
"""What a question is about, by the words around it."""


class ExplainChange(PlanPolicy):
    dact: ClassVar[str | None] = "explain_change"

    async def review(self, run: Execution) -> Ending | None:
        """Settle which column of which table is meant before anything is planned."""
        fill_own_names(run)
        _read_request(run)
        return _settle_measure(run) or await super().review(run)


def _read_request(run: Execution) -> None:
    """Words of the request that are in no catalogue: what has changed, however it is called; the month."""
    fill_category(run, "movement")
    fill_category(run, "month")
    for slot in ("table", "value"):
        if str(run.value(slot)).casefold().partition(" ")[0] in MONTHS:
            run.flow.clear(slot)
    year = _YEAR.search(run.context.text)
    if run.value("year") is None and year is not None:
        run.flow.fill_slots_by_label({"year": int(year[0])}, turn_id=run.context.ids.turn_id)
    found = _ASKED_ABOUT.search(run.context.text)
    if run.value("column") is None and found is not None:
        run.flow.fill_slots_by_label({"column": found[1]}, turn_id=run.context.ids.turn_id)


def _settle_measure(run: Execution) -> NeedsInput | None:
    """A table that has the column; where none has it the nearest measure that there is, or a question."""
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
        return _ask_for_another(run, str(column))
    _take(run, column=near.column, table=near.table)
    run.context.changes.remark(
        RemarkKind.ASSUMED,
        why=f"No table has {column}. The nearest there is by month is {near.words}; I look into that.",
    )
    return None


def _take(run: Execution, **values: str) -> None:
    run.flow.fill_slots_by_label(values, turn_id=run.context.ids.turn_id, source=SlotSource.DEFAULT)


def _ask_for_another(run: Execution, column: str) -> NeedsInput:
    run.context.changes.remark(
        RemarkKind.INVALID_VALUE,
        why=f"No table has {column}. By month there are {', '.join(MEASURES_BY_MONTH)}.",
        slot="column",
    )
    run.flow.clear("column")
    run.context.changes.state.ambiguity.declare(
        Level.SPECIFIC, flow_id=run.flow.flow_id, slot="column", turn_id=run.context.ids.turn_id
    )
    return NeedsInput()
