"""Changes that make new tables: of two by merge and union, of one by split and pivot."""

from __future__ import annotations

import re
from collections.abc import Sequence

from domains.analytics.statements.formulas import check_name
from domains.analytics.statements.measures import measure_of
from domains.analytics.statements.parts import Values, quote, quote_all
from domains.analytics.statements.question import Question, write_question
from domains.analytics.store.steps import ChangingService, once
from domains.analytics.store.workspace import Made, Sheet, Workspace, fold
from orchestrator.domain.services import FailureCategory, ToolCall, ToolFailure
from orchestrator.types import JsonObject

MOST_PARTS = 12
MOST_PIVOTED = 30


class Reshaping(ChangingService):
    """Makes tables of tables."""

    async def preview_merge(
        self, *, table: str, other_table: str, call: ToolCall, key: str | None = None
    ) -> JsonObject:
        """On which column two tables would be merged, and how many rows that would give."""
        workspace = await Workspace.open(self.records, call)
        left, right = workspace.sheet(table), workspace.sheet(other_table)
        _check_different(left, right)
        on = _common_key(left, right, key)
        sql = f"SELECT count(*) FROM in0 a JOIN in1 b ON a.{quote(on)} = b.{quote(on)}"  # noqa: S608
        return {"key": on, "matched": (await workspace.read(sql, {}, left, right)).rows[0][0]}

    @once
    async def merge(
        self,
        *,
        table: str,
        other_table: str,
        call: ToolCall,
        key: str | None = None,
        new_name: str | None = None,
    ) -> JsonObject:
        """Join two tables on a column that both have: the rows that are in both."""
        workspace = await Workspace.open(self.records, call)
        left, right = workspace.sheet(table), workspace.sheet(other_table)
        _check_different(left, right)
        on = _common_key(left, right, key)
        others = [c.name for c in right.columns if c.name != on]
        picked = [f"a.{quote(name)}" for name in left.names]
        picked += [f"b.{quote(name)} AS {quote(_unique(name, right.name, left.names))}" for name in others]
        sql = f"SELECT {', '.join(picked)} FROM in0 a JOIN in1 b ON a.{quote(on)} = b.{quote(on)}"  # noqa: S608
        name = new_name or f"{left.name}_{right.name}"
        action = f"merged {left.name} and {right.name} on {on}"
        return await self.create(call, name, sql, Values(), (left, right), action)

    @once
    async def union(
        self, *, table: str, other_table: str, call: ToolCall, new_name: str | None = None
    ) -> JsonObject:
        """The rows of both tables, in the columns that both have; `origin_table` says which."""
        workspace = await Workspace.open(self.records, call)
        left, right = workspace.sheet(table), workspace.sheet(other_table)
        _check_different(left, right)
        common = [name for name in left.names if name in right.names]
        if not common:
            message = f"{left.name} and {right.name} have no column in common."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        values = Values()
        marks = values.add(left.name), values.add(right.name)
        picked = quote_all(common)
        sql = (
            f"SELECT {picked}, {marks[0]}::VARCHAR AS origin_table FROM in0 "  # noqa: S608
            f"UNION ALL SELECT {picked}, {marks[1]}::VARCHAR FROM in1"
        )
        name = new_name or f"{left.name}_and_{right.name}"
        return await self.create(
            call, name, sql, values, (left, right), f"put {left.name} and {right.name} together"
        )

    @once
    async def split(self, *, table: str, by: str, call: ToolCall) -> JsonObject:
        """One new table for each value of a column."""
        workspace = await Workspace.open(self.records, call)
        sheet = workspace.sheet(table)
        column = sheet.column(by)
        name = quote(column.name)
        sql = f"SELECT DISTINCT {name}::VARCHAR FROM in0 WHERE {name} IS NOT NULL ORDER BY 1 LIMIT {MOST_PARTS + 1}"  # noqa: S608
        found = [str(row[0]) for row in (await workspace.read(sql, {}, sheet)).rows]
        if len(found) > MOST_PARTS:
            message = f"{column.name} has more than {MOST_PARTS} values; that would be too many tables."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        made: list[Made] = []
        for value in found:
            part = f"SELECT * FROM in0 WHERE {name}::VARCHAR = $v0"  # noqa: S608
            part_name = _slug(f"{sheet.name}_{value}")
            made.append(Made(part_name, await workspace.make(part_name, part, {"v0": value}, sheet.node)))
        parts: list[JsonObject] = [{"table": one.name, "rows": one.sheet.rows} for one in made if one.sheet]
        action = f"split {sheet.name} by {column.name}"
        step = await workspace.add(
            call.idempotency_key, action, made, {"table": sheet.name, "action": action, "parts": parts}
        )
        return await self.told(workspace, step)

    @once
    async def pivot(
        self,
        *,
        table: str,
        by: str,
        across: str,
        call: ToolCall,
        column: str | None = None,
        function: str = "average",
        new_name: str | None = None,
    ) -> JsonObject:
        """One row per value of `by`, one column per value of `across`."""
        workspace = await Workspace.open(self.records, call)
        sheet = workspace.sheet(table)
        rows, heads, values = sheet.column(by), sheet.column(across), Values()
        measure = measure_of(sheet, function if column else "count", column)
        name = quote(heads.name)
        sql = f"SELECT DISTINCT {name}::VARCHAR FROM in0 WHERE {name} IS NOT NULL ORDER BY 1 LIMIT {MOST_PIVOTED + 1}"  # noqa: S608
        found = [str(row[0]) for row in (await workspace.read(sql, {}, sheet)).rows]
        if not found or len(found) > MOST_PIVOTED:
            message = f"{heads.name} has {'no' if not found else 'too many'} values to become columns."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        labels = _labels(found, rows.name)
        parts = [
            f"{measure} FILTER (WHERE {name}::VARCHAR = {values.add(value)}) AS {quote(label)}"
            for value, label in zip(found, labels, strict=True)
        ]
        sql = f"SELECT {quote(rows.name)}, {', '.join(parts)} FROM in0 GROUP BY 1 ORDER BY 1"  # noqa: S608
        action = f"pivoted {sheet.name} by {rows.name} and {heads.name}"
        return await self.create(call, new_name or f"{sheet.name}_pivot", sql, values, (sheet,), action)

    @once
    async def save(
        self, *, table: str, new_name: str, call: ToolCall, question: JsonObject | None = None
    ) -> JsonObject:
        """What was asked of a table, as a table of its own; the whole table where nothing was asked."""
        workspace = await Workspace.open(self.records, call)
        sheet, values = workspace.sheet(table), Values()
        sql = await write_question(workspace, sheet, Question.of(question or {}), values)
        what = f"a part of {sheet.name}" if question else sheet.name
        action = f"saved {what} as {check_name(new_name)}"
        return await self.create(call, new_name, sql, values, (sheet,), action)

    @once
    async def drop(self, *, table: str, call: ToolCall) -> JsonObject:
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        return await self.remove(call, sheet.name, f"dropped the table {sheet.name}")


def _check_different(left: Sheet, right: Sheet) -> None:
    if left.name == right.name:
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, "Name two different tables.")


def _common_key(left: Sheet, right: Sheet, key: str | None) -> str:
    """The column to join on: the one named, else the only one that both have.

    Raises:
        ToolFailure: validation_error.
    """
    common = [name for name in left.names if name in right.names]
    if key is not None:
        name = left.column(key).name
        if name in common:
            return name
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"{right.name} has no column {name}.")
    if len(common) == 1:
        return common[0]
    times = [name for name in common if (column := left.find(name)) is not None and column.is_time]
    if len(times) == 1:
        return times[0]
    why = f"both have {', '.join(common)}; say which one" if common else "they have no column in common"
    message = f"I cannot tell on which column to merge {left.name} and {right.name}: {why}."
    raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)


def _unique(name: str, table: str, taken: Sequence[str]) -> str:
    return f"{name}_{table}" if name in taken else name


def _slug(text: str) -> str:
    """A text as a name."""
    return fold(re.sub(r"\W+", " ", text))[:60].strip("_") or "part"


def _labels(found: Sequence[str], taken: str) -> list[str]:
    """Different column names for values."""
    labels: list[str] = []
    for value in found:
        label = base = _slug(value) if _slug(value)[0].isalpha() else f"v_{_slug(value)}"
        number = 2
        while label in labels or label == taken:
            label, number = f"{base}_{number}", number + 1
        labels.append(label)
    return labels
