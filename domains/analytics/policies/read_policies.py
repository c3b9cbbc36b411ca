from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from domains.analytics.catalogue import TABLES, VALUES, tables_with
from domains.analytics.policy import TablePolicy, ask, has_table, saved_tables
from parley import (
    AnswerFromDocuments,
    Ending,
    Execution,
    Failed,
    FailureCategory,
    Frame,
    JsonObject,
    NoticeKind,
    SlotSource,
)

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?<!,)")
_FEWEST_POINTS, _MOST_BARS = 2, 50
_COLUMNS = ("column", "by")
WITHOUT_MODEL = (
    "This needs a language model, and none is available at the moment. "
    "Without one, I can list and describe tables, draw charts, save, export and report."
)


class Reading(TablePolicy):
    """The default policy of Read flows."""


class Chart(TablePolicy):
    """The policy of `chart`. If a chart would be unreadable, its frame has an error and shows a table (AG-6)."""

    dact: ClassVar[str | None] = "chart"

    async def review(self, run: Execution) -> Ending | None:
        _leave_unfitting_table(run)
        ending = await super().review(run)
        if ending is None and run.value("kind") == "histogram":
            return ask(run, "column") if run.value("column") is None and run.value("by") is None else None
        return ending

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        """Ask for another column if the table lacks the named column."""
        if failure.category is not FailureCategory.NOT_FOUND or not has_table(run):
            return await super().recover(run, failure)
        category = FailureCategory.NOT_FOUND.value
        run.context.tell(NoticeKind.FAILED, dact=run.flow.dact, category=category, message=failure.message)
        for slot in _COLUMNS:
            run.flow.clear(slot)
        return ask(run, "column")

    def frame(self, run: Execution) -> Frame:
        frame = super().frame(run)
        frame.error = _find_what_hides(run.data["chart_kind"], run.data["rows"])
        return frame


def _leave_unfitting_table(run: Execution) -> None:
    """Clear a table inherited from an earlier flow if it lacks the named columns and a base table has them."""
    held = run.flow.slots.get("table")
    named = {str(run.value(slot)) for slot in _COLUMNS if run.value(slot) is not None}
    if held is None or held.source is not SlotSource.INHERITED or not named:
        return
    columns = run.context.world.registry.tables.get(str(held.value), ())
    if not named <= set(columns) and tables_with(named):
        run.flow.clear("table")
        run.flow.clear("table_id")


def _find_what_hides(kind: str, rows: list[JsonObject]) -> str | None:
    if kind == "line" and len(rows) < _FEWEST_POINTS:
        return "a line chart needs at least two points."
    if kind == "bar" and len(rows) > _MOST_BARS:
        return f"{len(rows):,} bars are too many to read."
    return None


class AskData(TablePolicy):
    """The policy of `ask_data`. It rejects answers with numbers found in neither the last result nor the question."""

    dact: ClassVar[str | None] = "ask_data"

    def entities(self, run: Execution) -> Mapping[str, list[str]]:
        base = {name: [column.name for column in table.columns] for name, table in TABLES.items()}
        return {**base, **{name: list(columns) for name, columns in saved_tables(run).items()}}

    def knowledge(self, run: Execution) -> JsonObject:
        saved: JsonObject = {
            name: {"columns": list(columns), "about": "saved by the user"}
            for name, columns in saved_tables(run).items()
        }
        return {**{name: _describe(name) for name in TABLES}, **saved}

    def find_fault(self, run: Execution, data: JsonObject) -> str | None:
        if not run.returned:
            return "no query was run: call sql_run or row_compute, then answer from the returned rows"
        return self.find_fault_in_text(run, data["answer"])

    def find_fault_in_text(self, run: Execution, text: str) -> str | None:
        """Return an error message for the model if the text contains numbers without a source, or None."""
        unfounded = list(_unfounded_numbers(text, run)) if run.returned else []
        if unfounded:
            return (
                f"neither the rows nor the question contains {', '.join(unfounded)}: answer with numbers from "
                "the last result, and let the statement compute what is missing"
            )
        return None

    async def results(self, run: Execution) -> Ending | None:
        """Add the rows from the last statement to the answer's data."""
        run.data = {**(run.returned[-1] if run.returned else {}), **run.data}
        return await super().results(run)

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        """If the language model is unavailable, tell the user what works without the model."""
        if failure.check == "model_available":
            failure = replace(failure, message=WITHOUT_MODEL)
        return await super().recover(run, failure)


def _describe(table: str) -> JsonObject:
    known = TABLES[table]
    prefix = f"{table}."
    return {
        "about": known.title,
        "rows": known.rows,
        "columns": {column.name: column.type for column in known.columns},
        "values": {
            place.removeprefix(prefix): values for place, values in VALUES.items() if place.startswith(prefix)
        },
    }


def _unfounded_numbers(answer: str, run: Execution) -> Iterator[str]:
    """Yield numbers in the answer that occur in neither the last result, its statement nor the question.

    Rounded values from the result are accepted.
    """
    last = run.returned[-1]
    cells = [value for row in last["rows"] for value in row.values()]
    held = [float(last["row_count"]), *(float(value) for value in cells if isinstance(value, int | float))]
    said = " ".join([run.context.text, last["code"], *(value for value in cells if isinstance(value, str))])
    known = set(_NUMBER.findall(said))
    for number in _NUMBER.findall(answer):
        plain = number.replace(",", "")
        decimals = len(plain.partition(".")[2])
        if number not in known and all(round(abs(one), decimals) != float(plain) for one in held):
            yield number


class AskDocuments(AnswerFromDocuments):
    dact: ClassVar[str | None] = "ask_documents"
