"""Changes of tables: each makes a new version of a table, or a new table, as one step that can be undone."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps

from domains.analytics.catalogue import TABLES
from domains.analytics.conditions import parse_condition, read_value
from domains.analytics.formulas import check_name, split_formula, write_formula
from domains.analytics.reading import measure_of
from domains.analytics.showing import show_sheet, show_value
from domains.analytics.sql import Column, Values, quote, quote_all
from domains.analytics.workspace import Made, Sheet, Workspace, fold
from orchestrator.domain.services import FailureCategory, Service, ToolCall, ToolFailure
from orchestrator.types import Json, JsonObject

TYPES = {"text": "VARCHAR", "number": "DOUBLE", "whole": "BIGINT", "date": "DATE"}
KINDS = {"text": "text", "number": "numbers", "whole": "whole numbers", "date": "dates"}
SEPARATORS = {"space": " ", "comma": ",", "dash": "-", "slash": "/"}
MOST_PARTS = 12
MOST_PIVOTED = 30
_NUMBER = "row_number() OVER () AS __n"


Change = Callable[..., Awaitable[JsonObject]]


def once(change: Change) -> Change:
    """Answer a repeated attempt of a call from the step that the first one added."""

    @wraps(change)
    async def attempt(self: Workshop, *, call: ToolCall, **inputs: Json) -> JsonObject:
        workspace = await Workspace.open(self.records, call)
        earlier = workspace.done_by(call.idempotency_key)
        if earlier is not None:
            return await self.told(workspace, earlier)
        return await change(self, call=call, **inputs)

    return attempt


class Workshop(Service):
    """Changes the tables of a workspace, each call as one step."""

    async def outcome(self, *, idempotency_key: str, call: ToolCall) -> JsonObject:
        """What became of a call that changes tables: done, or not done as far as anyone will see."""
        workspace = await Workspace.open(self.records, call)
        step = workspace.done_by(idempotency_key)
        return {"status": "not_done"} if step is None else {"status": "done", "data": step["result"]}

    async def undo(self, *, call: ToolCall, step: int | None = None) -> JsonObject:
        workspace = await Workspace.open(self.records, call)
        undone = await workspace.undo(call.idempotency_key, step)
        left = await Workspace.open(self.records, call)
        table = next((one["name"] for one in undone["makes"] if one["name"] in left.sheets), "")
        found: JsonObject = {"action": undone["action"], "names": left.own_names}
        return {**found, "table": table, "row_count": left.sheets[table].rows} if table else found

    async def history(self, *, call: ToolCall) -> JsonObject:
        """The steps in force, the latest first."""
        workspace = await Workspace.open(self.records, call)
        steps = [step for step in reversed(workspace.steps) if not step["undone_by"]]
        rows: list[JsonObject] = [{"step": one["number"], "action": one["action"]} for one in steps]
        return {"rows": rows, "row_count": len(rows), "names": workspace.own_names}

    # Fewer rows, or the same in another order.

    async def preview_filter(self, *, table: str, condition: str, call: ToolCall) -> JsonObject:
        """How many rows a condition would keep and take away."""
        sheet, values, test = await self._tested(table, condition, call)
        workspace = await Workspace.open(self.records, call)
        sql = f"SELECT count(*) FROM in0 WHERE {test}"  # noqa: S608 - quoted names and parameters
        kept = (await workspace.read(sql, values.named, sheet)).rows[0][0]
        return {"kept": kept, "removed": sheet.rows - int(str(kept)), "total": sheet.rows}

    @once
    async def filter(self, *, table: str, condition: str, call: ToolCall) -> JsonObject:
        sheet, values, test = await self._tested(table, condition, call)
        sql = f"SELECT * FROM in0 WHERE {test}"  # noqa: S608
        return await self._replace(
            call, sheet.name, sql, values, f"kept the rows of {sheet.name} {condition}"
        )

    async def _tested(self, table: str, condition: str, call: ToolCall) -> tuple[Sheet, Values, str]:
        sheet, values = (await Workspace.open(self.records, call)).sheet(table), Values()
        return sheet, values, parse_condition(condition, sheet).write(values)

    @once
    async def deduplicate(self, *, table: str, call: ToolCall, column: str | None = None) -> JsonObject:
        """Keep the first of equal rows, in their order."""
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        keys = quote(sheet.column(column).name) if column else sheet.quoted
        sql = (
            f"SELECT {sheet.quoted} FROM (SELECT *, {_NUMBER} FROM in0) "  # noqa: S608
            f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY __n) = 1 ORDER BY __n"
        )
        return await self._replace(
            call, sheet.name, sql, Values(), f"taken duplicate rows out of {sheet.name}"
        )

    @once
    async def sort(
        self, *, table: str, order: str, call: ToolCall, direction: str = "ascending"
    ) -> JsonObject:
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        name = sheet.column(order).name
        way = "DESC" if direction == "descending" else "ASC"
        sql = f"SELECT * FROM in0 ORDER BY {quote(name)} {way} NULLS LAST"  # noqa: S608
        return await self._replace(
            call, sheet.name, sql, Values(), f"sorted {sheet.name} by {name}, {direction}"
        )

    @once
    async def sample(
        self, *, table: str, call: ToolCall, size: int = 100, new_name: str | None = None
    ) -> JsonObject:
        """Rows picked by a fixed scramble of their numbers: every worker picks the same."""
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        sql = (
            f"SELECT {sheet.quoted} FROM (SELECT *, {_NUMBER} FROM in0) "  # noqa: S608
            f"ORDER BY (__n * 2654435761) % 4294967296, __n LIMIT {int(size)}"
        )
        name = new_name or f"{sheet.name}_sample"
        return await self._create(call, name, sql, Values(), (sheet,), f"taken a sample of {sheet.name}")

    # Values.

    @once
    async def clean(
        self, *, table: str, call: ToolCall, column: str | None = None, case: str = "unchanged"
    ) -> JsonObject:
        """Trim texts and join their inner blanks; an empty text becomes missing."""
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        chosen = [sheet.column(column)] if column else [c for c in sheet.columns if c.is_text]
        if not chosen or not all(one.is_text for one in chosen):
            message = f"{chosen[0].name if chosen else sheet.name} holds no text to clean."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        parts = [f"{_cleaned(one, case)} AS {quote(one.name)}" for one in chosen]
        sql = f"SELECT * REPLACE ({', '.join(parts)}) FROM in0"  # noqa: S608
        names = ", ".join(one.name for one in chosen)
        how = "" if case == "unchanged" else f", in {case} case"
        return await self._replace(call, sheet.name, sql, Values(), f"cleaned {names} of {sheet.name}{how}")

    @once
    async def fill(
        self,
        *,
        table: str,
        column: str,
        call: ToolCall,
        strategy: str = "median",
        fill_value: float | None = None,
    ) -> JsonObject:
        """Give missing values of a column a value: of the column's others, or a given one."""
        sheet, values = (await Workspace.open(self.records, call)).sheet(table), Values()
        found = sheet.column(column)
        name = quote(found.name)
        replacement = _replacement(found, strategy if fill_value is None else "value", fill_value, values)
        sql = (
            f"SELECT {sheet.quoted} FROM (SELECT * REPLACE (coalesce({name}, {replacement}) AS {name}) "  # noqa: S608
            f"FROM (SELECT *, {_NUMBER} FROM in0)) ORDER BY __n"
        )
        how = f"the {strategy}" if fill_value is None else show_value(fill_value)
        action = f"filled missing {found.name} of {sheet.name} with {how}"
        return await self._replace(call, sheet.name, sql, values, action)

    async def preview_cast(self, *, table: str, column: str, type: str, call: ToolCall) -> JsonObject:  # noqa: A002
        """How many values another type could not hold."""
        workspace = await Workspace.open(self.records, call)
        sheet = workspace.sheet(table)
        name = quote(sheet.column(column).name)
        test = f"{name} IS NOT NULL AND TRY_CAST({name} AS {TYPES[type]}) IS NULL"
        lost = (await workspace.read(f"SELECT count(*) FROM in0 WHERE {test}", {}, sheet)).rows[0][0]  # noqa: S608
        return {"lost": lost, "total": sheet.rows}

    @once
    async def cast(self, *, table: str, column: str, type: str, call: ToolCall) -> JsonObject:  # noqa: A002
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        found = sheet.column(column)
        name = quote(found.name)
        sql = f"SELECT * REPLACE (TRY_CAST({name} AS {TYPES[type]}) AS {name}) FROM in0"  # noqa: S608
        return await self._replace(
            call, sheet.name, sql, Values(), f"turned {found.name} of {sheet.name} into {KINDS[type]}"
        )

    # Columns.

    @once
    async def rename(self, *, table: str, column: str, new_name: str, call: ToolCall) -> JsonObject:
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        found, name = sheet.column(column), _new_column(sheet, new_name)
        sql = f"SELECT * RENAME ({quote(found.name)} AS {quote(name)}) FROM in0"  # noqa: S608
        return await self._replace(
            call, sheet.name, sql, Values(), f"renamed {found.name} of {sheet.name} to {name}"
        )

    @once
    async def drop(self, *, table: str, column: str, call: ToolCall) -> JsonObject:
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        found = sheet.column(column)
        if len(sheet.columns) == 1:
            message = f"{found.name} is the only column of {sheet.name}."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        sql = f"SELECT * EXCLUDE ({quote(found.name)}) FROM in0"  # noqa: S608
        return await self._replace(call, sheet.name, sql, Values(), f"dropped {found.name} from {sheet.name}")

    @once
    async def derive(self, *, table: str, formula: str, call: ToolCall) -> JsonObject:
        sheet, values = (await Workspace.open(self.records, call)).sheet(table), Values()
        name, expression = split_formula(formula)
        written = write_formula(expression, sheet, values)
        sql = f"SELECT *, {written} AS {quote(_new_column(sheet, name))} FROM in0"  # noqa: S608
        return await self._replace(
            call, sheet.name, sql, values, f"added {name} = {expression} to {sheet.name}"
        )

    @once
    async def split_column(
        self,
        *,
        table: str,
        column: str,
        call: ToolCall,
        columns: Sequence[str] = (),
        separator: str = "space",
    ) -> JsonObject:
        """Cut a text column into several new ones; the last takes what is left."""
        sheet, values = (await Workspace.open(self.records, call)).sheet(table), Values()
        found = sheet.column(column)
        names = [_new_column(sheet, one) for one in columns] or [f"{found.name}_1", f"{found.name}_2"]
        if len(set(names)) < 2 or len(names) > MOST_PARTS:
            message = f"Name two to {MOST_PARTS} different new columns."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        mark = values.add(SEPARATORS[separator])
        split = f"string_split({quote(found.name)}::VARCHAR, {mark})"
        parts = [
            f"nullif(trim({split}[{index}]), '') AS {quote(one)}" for index, one in enumerate(names[:-1], 1)
        ]
        parts.append(
            f"nullif(trim(array_to_string({split}[{len(names)}:], {mark})), '') AS {quote(names[-1])}"
        )
        sql = f"SELECT *, {', '.join(parts)} FROM in0"  # noqa: S608
        action = f"split {found.name} of {sheet.name} into {', '.join(names)}"
        return await self._replace(call, sheet.name, sql, values, action)

    @once
    async def insert(
        self, *, table: str, call: ToolCall, values: JsonObject | None = None, condition: str | None = None
    ) -> JsonObject:
        """Add one row; columns that are not named stay empty."""
        sheet, bound = (await Workspace.open(self.records, call)).sheet(table), Values()
        given: dict[str, Json] = dict(parse_condition(condition, sheet).equalities) if condition else {}
        for said, value in (values or {}).items():
            column = sheet.column(said)
            given[column.name] = read_value(str(value), column)
        if not given:
            message = f"Give the values as “column: value”. The columns are {', '.join(sheet.names)}."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        cells = [
            f"CAST({bound.add(given[one.name]) if one.name in given else 'NULL'} AS {one.type}) AS {quote(one.name)}"
            for one in sheet.columns
        ]
        sql = f"SELECT * FROM in0 UNION ALL SELECT {', '.join(cells)}"  # noqa: S608
        told = ", ".join(f"{name} {value}" for name, value in given.items())
        result = await self._replace(
            call, sheet.name, sql, bound, f"inserted a row with {told} into {sheet.name}"
        )
        return {**result, "inserted": told}

    # Several tables.

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
        result = await self._create(call, name, sql, Values(), (left, right), action)
        return {**result, "key": on}

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
        return await self._create(
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
        return await self._create(call, new_name or f"{sheet.name}_pivot", sql, values, (sheet,), action)

    # What all have in common.

    async def _replace(self, call: ToolCall, table: str, sql: str, values: Values, action: str) -> JsonObject:
        """A new version of a table under its name."""
        workspace = await Workspace.open(self.records, call)
        return await self._commit(workspace, call, table, sql, values, (workspace.sheet(table),), action)

    async def _create(
        self, call: ToolCall, name: str, sql: str, values: Values, inputs: Sequence[Sheet], action: str
    ) -> JsonObject:
        """A new table; an older one of the user's own with that name is replaced, a base table never."""
        workspace = await Workspace.open(self.records, call)
        name = check_name(name)
        if name in TABLES:
            message = f"{name} is one of the given tables; choose another name."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        return await self._commit(workspace, call, name, sql, values, inputs, action)

    async def _commit(
        self,
        workspace: Workspace,
        call: ToolCall,
        name: str,
        sql: str,
        values: Values,
        inputs: Sequence[Sheet],
        action: str,
    ) -> JsonObject:
        sheet = await workspace.make(name, sql, values.named, *(one.node for one in inputs))
        result: JsonObject = {"table": name, "action": action, "rows_before": inputs[0].rows}
        step = await workspace.add(call.idempotency_key, action, [Made(name, sheet)], result)
        return await self.told(workspace, step)

    async def told(self, workspace: Workspace, step: JsonObject) -> JsonObject:
        """What a step did, with the first page of its table."""
        shown = await show_sheet(workspace, workspace.sheet(step["result"]["table"]))
        return {**shown, **step["result"]}


def _cleaned(column: Column, case: str) -> str:
    text = f"nullif(regexp_replace(trim({quote(column.name)}), '\\s+', ' ', 'g'), '')"
    if case == "title":
        words = f"string_split(lower({text}), ' ')"
        return f"array_to_string(list_transform({words}, lambda w: upper(w[1]) || w[2:]), ' ')"
    return {"lower": f"lower({text})", "upper": f"upper({text})"}.get(case, text)


def _replacement(column: Column, strategy: str, given: float | None, values: Values) -> str:
    name = quote(column.name)
    if strategy in {"mean", "median", "zero", "value"} and not column.is_number:
        message = f"{column.name} holds no numbers; fill it with the most common or the previous value."
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
    match strategy:
        case "mean":
            return f"(SELECT avg({name}) FROM in0)"  # noqa: S608
        case "median":
            return f"(SELECT median({name}) FROM in0)"  # noqa: S608
        case "common":
            return f"(SELECT mode({name}) FROM in0)"  # noqa: S608
        case "previous":
            return f"last_value({name} IGNORE NULLS) OVER (ORDER BY __n)"
        case "zero":
            return values.add(0)
        case _:
            return values.add(given)


def _new_column(sheet: Sheet, said: str) -> str:
    """A name that no column of the table has.

    Raises:
        ToolFailure: validation_error.
    """
    name = check_name(said)
    if name in {one.casefold() for one in sheet.names}:
        raise ToolFailure(FailureCategory.VALIDATION_ERROR, f"{sheet.name} has a column {name} already.")
    return name


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
