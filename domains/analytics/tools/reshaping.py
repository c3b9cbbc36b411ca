"""Make new tables: of two by merge and union, of one by split and pivot, of an answer by saving it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from domains.analytics.statements.formulas import check_name
from domains.analytics.statements.parts import Values, invalid, quote
from domains.analytics.statements.question import Question, measure_of, write_question
from domains.analytics.store.sheet import Sheet, fold
from domains.analytics.store.workspace import Made, TableService, Workspace
from domains.analytics.tools.steps import Edit, commit, describe_step, once
from orchestrator import JsonObject, ToolCall

MOST_PARTS = 12
MOST_PIVOTED = 30


class Reshaping(TableService):
    """Makes tables of tables, and takes tables away."""

    async def preview_merge(
        self, *, table: str, other_table: str, call: ToolCall, key: str | None = None
    ) -> JsonObject:
        """Say on which column two tables would be merged, and how many rows that would give."""
        workspace, left = await self.open(call, table)
        right = _other(workspace, left, other_table)
        on = _common_key(left, right, key)
        sql = f"SELECT count(*) FROM in0 a JOIN in1 b ON a.{quote(on)} = b.{quote(on)}"  # noqa: S608
        return {"key": on, "matched": await workspace.number(sql, {}, left, right)}

    @once
    async def merge(
        self,
        workspace: Workspace,
        *,
        table: str,
        other_table: str,
        call: ToolCall,
        key: str | None = None,
        new_name: str | None = None,
    ) -> JsonObject:
        """Join two tables on a column that both have: the rows that are in both."""
        left = workspace.sheet(table)
        right = _other(workspace, left, other_table)
        on = _common_key(left, right, key)
        others = [c.name for c in right.columns if c.name != on]
        picked = [f"a.{quote(name)}" for name in left.names]
        for name in others:
            unique = f"{name}_{right.name}" if name in left.names else name
            picked.append(f"b.{quote(name)} AS {quote(unique)}")
        sql = f"SELECT {', '.join(picked)} FROM in0 a JOIN in1 b ON a.{quote(on)} = b.{quote(on)}"  # noqa: S608
        name, action = new_name or f"{left.name}_{right.name}", f"merged {left.name} and {right.name} on {on}"
        return await commit(workspace, call, (left, right), Edit(action, sql, name=name))

    @once
    async def union(
        self,
        workspace: Workspace,
        *,
        table: str,
        other_table: str,
        call: ToolCall,
        new_name: str | None = None,
    ) -> JsonObject:
        """Put the rows of both tables together, in the columns that both have; `origin_table` says which."""
        left = workspace.sheet(table)
        right = _other(workspace, left, other_table)
        common = [name for name in left.names if name in right.names]
        if not common:
            raise invalid(f"{left.name} and {right.name} have no column in common.")
        values, picked = Values(), quote(*common)
        parts = [
            f"SELECT {picked}, {values.add(sheet.name)}::VARCHAR AS origin_table FROM in{index}"  # noqa: S608
            for index, sheet in enumerate((left, right))
        ]
        name, action = (
            new_name or f"{left.name}_and_{right.name}",
            f"put {left.name} and {right.name} together",
        )
        return await commit(
            workspace, call, (left, right), Edit(action, " UNION ALL ".join(parts), values, name)
        )

    @once
    async def split(self, workspace: Workspace, *, table: str, by: str, call: ToolCall) -> JsonObject:
        """Make one new table for each value of a column."""
        sheet = workspace.sheet(table)
        column = sheet.column(by)
        found = await _values_of(workspace, sheet, column.name, MOST_PARTS)
        if len(found) > MOST_PARTS:
            raise invalid(f"{column.name} has more than {MOST_PARTS} values; that would be too many tables.")
        made: list[Made] = []
        for value in found:
            part = f"SELECT * FROM in0 WHERE {quote(column.name)}::VARCHAR = $v0"  # noqa: S608
            name = _slug(f"{sheet.name}_{value}")
            made.append(Made(name, await workspace.make(name, part, {"v0": value}, sheet.node)))
        parts: list[JsonObject] = [{"table": one.name, "rows": one.sheet.rows} for one in made if one.sheet]
        action = f"split {sheet.name} by {column.name}"
        result: JsonObject = {"table": sheet.name, "action": action, "parts": parts}
        return await describe_step(workspace, await workspace.add(call.idempotency_key, action, made, result))

    @once
    async def pivot(
        self,
        workspace: Workspace,
        *,
        table: str,
        by: str,
        across: str,
        call: ToolCall,
        column: str | None = None,
        function: str = "average",
        new_name: str | None = None,
    ) -> JsonObject:
        """Give one row per value of `by`, one column per value of `across`."""
        sheet, values = workspace.sheet(table), Values()
        rows, heads = sheet.column(by), sheet.column(across)
        measure = measure_of(sheet, function if column else "count", column)
        found = await _values_of(workspace, sheet, heads.name, MOST_PIVOTED)
        if not found or len(found) > MOST_PIVOTED:
            raise invalid(f"{heads.name} has {'no' if not found else 'too many'} values to become columns.")
        parts = [
            f"{measure} FILTER (WHERE {quote(heads.name)}::VARCHAR = {values.add(value)}) AS {quote(label)}"
            for value, label in zip(found, _labels(found, rows.name), strict=True)
        ]
        sql = f"SELECT {quote(rows.name)}, {', '.join(parts)} FROM in0 GROUP BY 1 ORDER BY 1"  # noqa: S608
        action = f"pivoted {sheet.name} by {rows.name} and {heads.name}"
        change = Edit(action, sql, values, new_name or f"{sheet.name}_pivot")
        return await commit(workspace, call, (sheet,), change)

    @once
    async def save(
        self,
        workspace: Workspace,
        *,
        table: str,
        new_name: str,
        call: ToolCall,
        question: JsonObject | None = None,
    ) -> JsonObject:
        """Save what was asked of a table as a table of its own; the whole table where nothing was asked."""
        sheet, values = workspace.sheet(table), Values()
        asked = Question.of(question or {})
        sql = await write_question(workspace, sheet, asked, values)
        change = Edit(f"saved {asked.name_of(sheet.name)} as {check_name(new_name)}", sql, values, new_name)
        return await commit(workspace, call, (sheet,), change)

    @once
    async def drop(self, workspace: Workspace, *, table: str, call: ToolCall) -> JsonObject:
        """Take a table away; undoing the step brings it back."""
        sheet = workspace.sheet(table)
        action = f"dropped the table {sheet.name}"
        result: JsonObject = {"table": sheet.name, "action": action, "rows_before": sheet.rows}
        step = await workspace.add(call.idempotency_key, action, [Made(sheet.name, None)], result)
        return await describe_step(workspace, step)


async def _values_of(workspace: Workspace, sheet: Sheet, column: str, most: int) -> list[str]:
    """List the values of a column in order, and one more than the most where there are more."""
    name = quote(column)
    sql = f"SELECT DISTINCT {name}::VARCHAR FROM in0 WHERE {name} IS NOT NULL ORDER BY 1 LIMIT {most + 1}"  # noqa: S608
    return [str(row[0]) for row in (await workspace.read(sql, {}, sheet)).rows]


def _other(workspace: Workspace, left: Sheet, said: str) -> Sheet:
    right = workspace.sheet(said)
    if left.name == right.name:
        raise invalid("Name two different tables.")
    return right


def _common_key(left: Sheet, right: Sheet, key: str | None) -> str:
    """Choose the column to join on: the one named, else the only one that both have.

    Raises:
        ToolFailure: validation_error.
    """
    common = [name for name in left.names if name in right.names]
    if key is not None:
        name = left.column(key).name
        if name in common:
            return name
        raise invalid(f"{right.name} has no column {name}.")
    if len(common) == 1:
        return common[0]
    times = [name for name in common if (column := left.find(name)) is not None and column.is_time]
    if len(times) == 1:
        return times[0]
    why = f"both have {', '.join(common)}; say which one" if common else "they have no column in common"
    raise invalid(f"I cannot tell on which column to merge {left.name} and {right.name}: {why}.")


def _slug(text: str) -> str:
    """Make a name of a text."""
    return fold(re.sub(r"\W+", " ", text))[:60].strip("_") or "part"


def _labels(found: Sequence[str], taken: str) -> list[str]:
    """Make different column names for values."""
    labels: list[str] = []
    for value in found:
        label = base = _slug(value) if _slug(value)[0].isalpha() else f"v_{_slug(value)}"
        number = 2
        while label in labels or label == taken:
            label, number = f"{base}_{number}", number + 1
        labels.append(label)
    return labels
