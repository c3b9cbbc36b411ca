"""Policies of Read flows: questions about tables, and where a query goes whose data are not there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from domains.analytics.catalogue import TABLES, VALUES
from domains.analytics.policy import TablePolicy, ask, names_no_table, own_columns
from orchestrator import (
    AnswerFromDocuments,
    Dact,
    Ending,
    Execution,
    Failed,
    FailureCategory,
    Frame,
    JsonObject,
    Recover,
    Recovery,
)

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?<!,)")
_FEWEST_POINTS, _MOST_BARS = 2, 50
_ABOUT_VALUES = frozenset({FailureCategory.VALIDATION_ERROR, FailureCategory.NOT_FOUND})


def choose_staging(sources: int, targets: int, *, columns: bool = True) -> Dact | None:
    """Choose the change that makes what is missing, by how many tables are at hand and how much is missing.

    Several tables have to become one. In one table, missing rows are inserted; a missing column is derived,
    and several are split off another. Where nothing is missing: none.
    """
    if sources >= 2:
        return Dact("merge")
    if not targets:
        return None
    if not columns:
        return Dact("insert_row")
    return Dact("split_column" if targets >= 2 else "derive_column")


class Reading(TablePolicy):
    """Lets go of a question of several parts that has no answer: it is as quickly asked anew."""

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        about_values = failure.category in _ABOUT_VALUES and failure.check is None
        about_values = about_values and not names_no_table(run, failure)
        if about_values and len(run.flow.slots) > 1 and self.fallback(run, failure) is None:
            return Recover(Recovery.ESCALATE, failure)
        return await super().recover(run, failure)


class Query(Reading):
    dact: ClassVar[str | None] = "query"

    def fallback(self, run: Execution, failure: Failed) -> Dact | None:
        """Lead a query whose data do not exist yet to the change that would make them (PX-16)."""
        if failure.category is not FailureCategory.NOT_FOUND or "sources" not in run.data:
            return super().fallback(run, failure)
        data = run.data
        change = choose_staging(data["sources"], data["targets"], columns=bool(data["missing"]))
        return change or super().fallback(run, failure)

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        """Hand over, of the columns asked for, only those that are missing: they are to be made."""
        ending = await super().recover(run, failure)
        if isinstance(ending, Recover) and ending.target is not None:
            run.flow.clear("columns")
            if run.data["missing"]:
                run.flow.fill_slots_by_label(
                    {"columns": run.data["missing"]}, turn_id=run.context.ids.turn_id
                )
        return ending


class Aggregate(Reading):
    dact: ClassVar[str | None] = "aggregate"

    async def review(self, run: Execution) -> Ending | None:
        """Everything but counting rows needs a column."""
        ending = await super().review(run)
        if ending is None and run.value("function") not in {None, "count"} and run.value("column") is None:
            return ask(run, "column")
        return ending


class Chart(Reading):
    """Draws, and lets a table stand for a picture on which nothing could be seen (AG-6)."""

    dact: ClassVar[str | None] = "chart"

    async def review(self, run: Execution) -> Ending | None:
        """A scatter plot is of two columns: which ones is for the user to say."""
        ending = await super().review(run)
        if ending is not None or run.value("kind") != "scatter":
            return ending
        return next((ask(run, slot) for slot in ("column", "by") if run.value(slot) is None), None)

    def frame(self, run: Execution) -> Frame:
        frame = super().frame(run)
        frame.error = _find_what_hides(run.data["chart_kind"], run.data["chart"])
        return frame


def _find_what_hides(kind: str, chart: JsonObject) -> str | None:
    """Say why nobody could read a picture that can well be drawn."""
    rows, measured = chart["data"]["values"], chart["encoding"]["y"]["title"]
    if all(list(row.values())[-1] is None for row in rows):
        return f"{measured} is empty in all of these rows."
    if kind == "line" and len(rows) < _FEWEST_POINTS:
        return "one point makes no line."
    if kind == "bar" and len(rows) > _MOST_BARS:
        return f"{len(rows):,} bars are too many to read."
    return None


class Compare(Reading):
    dact: ClassVar[str | None] = "compare"

    async def review(self, run: Execution) -> Ending | None:
        """Two groups or two years are needed, whichever was begun with."""
        ending = await super().review(run)
        if ending is not None:
            return ending
        if run.value("first_year") is not None and run.value("second_year") is not None:
            return None
        return next((ask(run, slot) for slot in ("first", "second") if run.value(slot) is None), None)


class AskData(TablePolicy):
    """Has a model write SQL, and takes no answer that the rows do not bear out."""

    dact: ClassVar[str | None] = "ask_data"

    def entities(self, run: Execution) -> Mapping[str, list[str]]:
        """Name every table with its columns: those of the catalogue, and the user's own in their place."""
        base = {name: [column.name for column in table.columns] for name, table in TABLES.items()}
        return {**base, **{name: list(columns) for name, columns in own_columns(run).items()}}

    def knowledge(self, run: Execution) -> JsonObject:
        """Describe the tables to the model."""
        own = own_columns(run)
        return {
            name: {"columns": columns, "about": "made by the user"} if name in own else _describe(name)
            for name, columns in self.entities(run).items()
        }

    def find_fault(self, run: Execution, data: JsonObject) -> str | None:
        if not run.returned:
            return "no statement was carried out: call sql_run, or row_compute, then answer from its rows"
        return self.find_fault_in_text(run, data["answer"])

    def find_fault_in_text(self, run: Execution, text: str) -> str | None:
        """Find numbers that no row bears out."""
        unfounded = list(_unfounded_numbers(text, run)) if run.returned else []
        if unfounded:
            return (
                f"{', '.join(unfounded)} stands neither in the rows nor in the question: answer with numbers of "
                "the last result, and let the statement compute what is missing"
            )
        return None

    async def results(self, run: Execution) -> Ending | None:
        """Show the rows of the last statement beside the answer."""
        run.data = {**(run.returned[-1] if run.returned else {}), **run.data}
        return await super().results(run)

    async def recover(self, run: Execution, failure: Failed) -> Ending:
        """Say, where there is no model, what can be asked without one."""
        if failure.check == "model_available":
            simple = (
                "Without one I take simple questions: “average mpg by origin”, “cars where mpg is over 40”."
            )
            failure = replace(failure, message=f"{failure.message} {simple}")
        return await super().recover(run, failure)


def _describe(table: str) -> JsonObject:
    """Describe a table of the catalogue: what it is about, its columns with types, the values that have names."""
    known = TABLES[table]
    prefix = f"{table}."
    return {
        "about": known.title,
        "rows": known.rows,
        "columns": {column.name: column.type for column in known.columns},
        "values": {
            place.removeprefix(prefix): list(values)
            for place, values in VALUES.items()
            if place.startswith(prefix)
        },
    }


def _unfounded_numbers(answer: str, run: Execution) -> Iterator[str]:
    """Find the numbers of an answer that no row has, rounded as they are said, and nobody has said."""
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
