"""Answer questions about tables that change nothing: look, query, aggregate, compare, profile, find faults."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import sqlglot
from sqlglot import exp

from domains.analytics.catalogue import TABLES
from domains.analytics.statements.conditions import Condition, parse_condition
from domains.analytics.statements.parts import Column, Values, invalid, not_found, quote, to_objects
from domains.analytics.statements.question import Question, column_with, measure_of, write_question
from domains.analytics.store.sheet import Sheet, fold
from domains.analytics.store.workspace import TableService, Workspace
from domains.analytics.tools.display import PAGE_ROWS, about, answer, describe_rows, show_sheet, show_value
from orchestrator import Json, JsonObject, ToolCall

MOST_NAMED = 8
MOST_COMPUTED = 2000
"""Rows that go into Python at once."""


class Tables(TableService):
    """Answers questions about the tables of a workspace."""

    async def list(self, *, call: ToolCall) -> JsonObject:
        """List every table with its size; a table of the user's own says so."""
        workspace = await Workspace.open(self.records, call)
        rows: list[JsonObject] = [
            {
                "table": sheet.name,
                "rows": sheet.rows,
                "columns": len(sheet.columns),
                "about": TABLES[sheet.name].title if sheet.name in TABLES else "made by you",
            }
            for sheet in workspace.sheets.values()
        ]
        return {"tables": rows, "count": len(rows), "names": workspace.own_names}

    async def describe(self, *, table: str, call: ToolCall) -> JsonObject:
        workspace, sheet = await self.open(call, table)
        title = TABLES[sheet.name].title if sheet.name in TABLES else ""
        fields: list[JsonObject] = [{"column": one.name, "type": one.kind} for one in sheet.columns]
        return {**about(workspace, sheet), "fields": fields, "row_count": sheet.rows, "title": title}

    async def preview(self, *, table: str, call: ToolCall, limit: int | None = None) -> JsonObject:
        workspace, sheet = await self.open(call, table)
        if limit is not None:
            first = await answer(workspace, f"SELECT * FROM in0 LIMIT {int(limit)}", {}, sheet)  # noqa: S608
            return {**first, "total": sheet.rows}
        return {**await show_sheet(workspace, sheet), "total": sheet.rows}

    async def page(self, table_id: str, number: int, call: ToolCall) -> JsonObject:
        """Give page `number` (from 1) of a frame's table: {rows, page, pages, row_count}."""
        workspace = await Workspace.open(self.records, call)
        found = await workspace.page(table_id, number)
        return {**found, "rows": to_objects(found["rows"].columns, found["rows"].rows)}

    async def survey(
        self,
        *,
        table: str,
        call: ToolCall,
        other_table: str | None = None,
        columns: list[str] | None = None,
        condition: str | None = None,
    ) -> JsonObject:
        """Look whether what a query asks for is there, counted as sources and missing targets (PX-16)."""
        workspace = await Workspace.open(self.records, call)
        sheets = [workspace.sheet(name) for name in (table, other_table) if name is not None]
        sources = list(dict.fromkeys(sheet.name for sheet in sheets))
        missing = [fold(name) for name in columns or [] if not any(sheet.find(name) for sheet in sheets)]
        known = [name for name in columns or [] if sheets[0].find(name)]
        absent: list[str] = []
        if condition is not None and len(sources) == 1:
            absent = await _absent(workspace, sheets[0], parse_condition(condition, sheets[0]))
        found: JsonObject = {"sources": len(sources), "targets": len(missing) or len(absent)}
        return {**found, "missing": missing, "known": known, "absent": absent}

    async def query(
        self, *, table: str, call: ToolCall, other_table: str | None = None, **asked: Json
    ) -> JsonObject:
        """Find rows of one table: `asked` are chosen columns, a condition, a value, an order, a limit.

        Raises:
            ToolFailure: not_found when the data asked for are not in the table, or not in one table.
        """
        workspace, sheet = await self.open(call, table)
        if other_table is not None and workspace.sheet(other_table).name != sheet.name:
            raise not_found(
                f"{sheet.name} and {other_table} are separate tables; they have to be merged first."
            )
        question, values = Question.of(asked), Values()
        sql = await write_question(workspace, sheet, question, values)
        found = await answer(workspace, sql, values.named, sheet)
        if not found["row_count"] and question.condition and question.value is None:
            absent = await _absent(workspace, sheet, parse_condition(question.condition, sheet))
            if absent:
                raise not_found(f"{sheet.name} has no row with {' or '.join(absent)}.")
        return {**found, "among": question.among}

    async def run_sql(self, *, statement: str, call: ToolCall) -> JsonObject:
        """Carry out a SELECT over tables by their names; `statement` has passed the guardrails (PX-10).

        Raises:
            ToolFailure: validation_error with what the database says, or when no table is read.
        """
        workspace = await Workspace.open(self.records, call)
        sql, sheets = _bind_tables(workspace, statement)
        return {**await answer(workspace, sql, {}, *sheets), "code": statement}

    async def compute(self, *, statement: str, code: str, call: ToolCall) -> JsonObject:
        """Compute with Python over the rows of a SELECT, for what SQL cannot say; both have passed the guardrails.

        `code` is one function of `rows`, a list of objects. It gives a list of objects, one object, or a value.

        Raises:
            ToolFailure: validation_error with what the database or Python says, or for too many rows.
        """
        if self.python is None:
            raise invalid("Python cannot be run here.")
        workspace = await Workspace.open(self.records, call)
        sql, sheets = _bind_tables(workspace, statement)
        found = await workspace.read(f"SELECT * FROM ({sql}) LIMIT {MOST_COMPUTED + 1}", {}, *sheets)  # noqa: S608
        if len(found.rows) > MOST_COMPUTED:
            raise invalid(
                f"At most {MOST_COMPUTED:,} rows go into Python: filter or group them in the statement."
            )
        computed = await self.python.run(code, {"rows": to_objects(found.columns, found.rows)})
        rows = computed if isinstance(computed, list) else [computed]
        rows = [row if isinstance(row, dict) else {"result": row} for row in rows]
        names = [*dict.fromkeys(name for row in rows for name in row)]
        shown = [{name: row.get(name) for name in names} for row in rows[:PAGE_ROWS]]
        return {**about(workspace, sheets[0]), **describe_rows(names, shown, len(rows)), "code": code}

    async def aggregate(self, *, table: str, call: ToolCall, **asked: Json) -> JsonObject:
        """Give one number, or one per group, the greatest first (periods in order, unless they are ranked).

        Without a function: the average of numbers, else how many there are.
        """
        workspace, sheet = await self.open(call, table)
        said, values = Question.of(asked), Values()
        measured = said.column is not None and sheet.column(said.column).is_number
        function = said.function or ("average" if measured else "count")
        groups = [name for name in (said.by, said.also_by) if name is not None]
        first, second = (*groups, None, None)[:2]
        question = replace(said, function=function, by=first, also_by=second)
        found = await answer(
            workspace, await write_question(workspace, sheet, question, values), values.named, sheet
        )
        return {
            **found,
            "function": function,
            "by": " and ".join(groups),
            "ranked": question.limit is not None and said.by is not None,
            "what": question.measured,
            "among": question.among,
        }

    async def compare(
        self,
        *,
        table: str,
        column: str,
        call: ToolCall,
        function: str = "average",
        first: str | None = None,
        second: str | None = None,
        first_year: int | None = None,
        second_year: int | None = None,
    ) -> JsonObject:
        """Compare one measure for two groups, or for two years."""
        workspace, sheet = await self.open(call, table)
        if first is not None and second is not None:
            group, wanted = quote((await column_with(workspace, sheet, first)).name), [first, second]
        elif first_year is not None and second_year is not None:
            group, wanted = f"year({quote(sheet.time.name)})", [str(first_year), str(second_year)]
        else:
            raise invalid("Name the two groups, or the two years, that I should compare.")
        values, measure = Values(), measure_of(sheet, function, column)
        parts = [
            f"SELECT {mark}::VARCHAR AS of, {measure} AS value, count(*) AS rows "  # noqa: S608
            f"FROM in0 WHERE lower({group}::VARCHAR) = lower({mark})"
            for mark in map(values.add, wanted)
        ]
        found = await answer(workspace, " UNION ALL ".join(parts), values.named, sheet)
        empty = [name for name, row in zip(wanted, found["rows"], strict=True) if not row["rows"]]
        if empty:
            raise invalid(f"{sheet.name} has no rows of {' or '.join(empty)}.")
        low, high = (row["value"] for row in found["rows"])
        return {
            **found,
            "function": function,
            "what": Question(function=function, column=column).measured,
            "difference": high - low,
            "shown": [show_value(low), show_value(high)],
            "gap": show_value(abs(high - low)),
            "share": show_value(round(abs((high - low) / abs(low) * 100), 1)) if low else "",
        }

    async def profile(self, *, table: str, call: ToolCall, column: str | None = None) -> JsonObject:
        """Describe each column: how many values, missing and different ones, and their range."""
        workspace, sheet = await self.open(call, table)
        chosen = sheet.chosen(column)
        found = await answer(workspace, " UNION ALL ".join(map(_profile_of, chosen)), {}, sheet)
        return {**found, "row_count": len(chosen), "total": sheet.rows}

    async def find_missing(self, *, table: str, call: ToolCall, column: str | None = None) -> JsonObject:
        workspace, sheet = await self.open(call, table)
        chosen = sheet.chosen(column)
        counts = ", ".join(f"count(*) - count({quote(c.name)})" for c in chosen)
        gaps = (await workspace.read(f"SELECT {counts} FROM in0", {}, sheet)).rows[0]  # noqa: S608
        rows: list[JsonObject] = [
            {"column": one.name, "missing": int(str(gap))}
            for one, gap in zip(chosen, gaps, strict=True)
            if gap
        ]
        rows.sort(key=lambda row: -row["missing"])
        missing = sum(row["missing"] for row in rows)
        described = describe_rows(["column", "missing"], rows, len(rows))
        return {**about(workspace, sheet), **described, "missing": missing, "total": sheet.rows}

    async def find_duplicates(self, *, table: str, call: ToolCall, column: str | None = None) -> JsonObject:
        """Find rows that repeat an earlier one, in all columns or in one."""
        workspace, sheet = await self.open(call, table)
        keys = quote(*(one.name for one in sheet.chosen(column)))
        sql = f"SELECT {keys}, count(*) AS times FROM in0 GROUP BY {keys} HAVING count(*) > 1 ORDER BY times DESC"  # noqa: S608
        found = await answer(workspace, sql, {}, sheet)
        repeated = f"SELECT coalesce(sum(times - 1), 0)::BIGINT FROM ({sql})"  # noqa: S608
        return {**found, "duplicates": await workspace.number(repeated, {}, sheet), "total": sheet.rows}

    async def find_outliers(self, *, table: str, column: str, call: ToolCall) -> JsonObject:
        """Find rows whose value lies more than one and a half quartile ranges outside of the middle half."""
        workspace, sheet = await self.open(call, table)
        name = quote(sheet.number(column).name)
        quartiles = f"SELECT quantile_cont({name}, 0.25) AS low, quantile_cont({name}, 0.75) AS high FROM in0"  # noqa: S608
        low, high = (await workspace.read(quartiles, {}, sheet)).rows[0]
        if not isinstance(low, int | float) or not isinstance(high, int | float):
            raise not_found(f"{column} has no values.")
        values = Values()
        reach = 1.5 * (high - low)
        fences = values.add(low - reach), values.add(high + reach)
        picked = ", ".join(dict.fromkeys([name, *(quote(one.name) for one in sheet.columns)]))
        sql = f"SELECT {picked} FROM in0 WHERE {name} < {fences[0]} OR {name} > {fences[1]} ORDER BY {name} DESC"  # noqa: S608
        found = await answer(workspace, sql, values.named, sheet)
        return {
            **found,
            "measured": column,
            "fences": show_value(low - reach) + " to " + show_value(high + reach),
            "total": sheet.rows,
        }

    async def correlate(
        self, *, table: str, call: ToolCall, column: str | None = None, other_column: str | None = None
    ) -> JsonObject:
        """Measure the correlation of two columns, or of all pairs, the strongest first."""
        workspace, sheet = await self.open(call, table)
        pairs = _pairs(sheet, column, other_column)
        if not pairs:
            raise invalid(f"{sheet.name} has fewer than two columns of numbers.")
        values = Values()
        parts = [
            f"SELECT {values.add(f'{one.name} and {other.name}')} AS pair, "  # noqa: S608
            f"corr({quote(one.name)}, {quote(other.name)}) AS correlation FROM in0"
            for one, other in pairs
        ]
        sql = f"SELECT * FROM ({' UNION ALL '.join(parts)}) ORDER BY abs(correlation) DESC NULLS LAST"  # noqa: S608
        found = await answer(workspace, sql, values.named, sheet)
        return {**found, "correlation": found["rows"][0]["correlation"]}


def _bind_tables(workspace: Workspace, statement: str) -> tuple[str, list[Sheet]]:
    """Put the tables that a statement names in front of it. Raises ToolFailure when it names none."""
    named = {table.name.lower() for table in sqlglot.parse_one(statement, read="duckdb").find_all(exp.Table)}
    sheets = [workspace.sheets[name] for name in sorted(named) if name in workspace.sheets]
    if not sheets:
        raise invalid(f"Read from a table. There are {', '.join(workspace.sheets)}.")
    parts = ", ".join(f"{quote(one.name)} AS (SELECT * FROM in{at})" for at, one in enumerate(sheets))  # noqa: S608
    return f"WITH {parts} SELECT * FROM ({statement})", sheets  # noqa: S608


async def _absent(workspace: Workspace, sheet: Sheet, condition: Condition) -> list[str]:
    """List the values that a condition names exactly and that its column does not have at all."""
    absent: list[str] = []
    for clause in condition.clauses:
        for value in clause.values if clause.operator == "=" and clause.column.is_text else ():
            sql = f"SELECT count(*) FROM in0 WHERE lower({quote(clause.column.name)}) = lower($v0)"  # noqa: S608
            if not await workspace.number(sql, {"v0": value}, sheet):
                absent.append(f"{clause.column.name} {value}")
    return absent


def _profile_of(column: Column) -> str:
    name, label = quote(column.name), column.name.replace("'", "''")
    average = f"round(avg({name}), 3)::VARCHAR" if column.is_number else "NULL"
    return (
        f"SELECT '{label}' AS column, '{column.kind}' AS type, count({name}) AS filled, "  # noqa: S608
        f"count(*) - count({name}) AS missing, count(DISTINCT {name}) AS different, "
        f"min({name})::VARCHAR AS lowest, max({name})::VARCHAR AS highest, {average} AS average FROM in0"
    )


def _pairs(sheet: Sheet, column: str | None, other: str | None) -> list[tuple[Column, Column]]:
    said = [sheet.number(name) for name in (column, other) if name]
    if len(said) == 2:
        return [(said[0], said[1])]
    if said:
        return [(said[0], one) for one in sheet.numbers if one != said[0]]
    return list(combinations(sheet.numbers[:MOST_NAMED], 2))
