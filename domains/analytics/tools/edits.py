"""Changes of one table: each makes a new version of it, or a sample, as one step that can be undone."""

from __future__ import annotations

from collections.abc import Sequence

from domains.analytics.statements.conditions import parse_condition, read_value
from domains.analytics.statements.formulas import check_name, split_formula, write_formula
from domains.analytics.statements.parts import Column, Values, quote
from domains.analytics.store.steps import ChangingService, once
from domains.analytics.store.workspace import Sheet, Workspace
from domains.analytics.tools.display import show_value
from orchestrator.domain.services import FailureCategory, ToolCall, ToolFailure
from orchestrator.types import Json, JsonObject

TYPES = {"text": "VARCHAR", "number": "DOUBLE", "whole": "BIGINT", "date": "DATE"}
KINDS = {"text": "text", "number": "numbers", "whole": "whole numbers", "date": "dates"}
SEPARATORS = {"space": " ", "comma": ",", "dash": "-", "slash": "/"}
MOST_PARTS = 12
_NUMBER = "row_number() OVER () AS __n"


class Edits(ChangingService):
    """Changes the tables of a workspace one by one, and takes changes back."""

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
        rows = left.sheets[table].rows if table else 0
        return {"action": undone["action"], "names": left.own_names, "table": table, "row_count": rows}

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
        return await self.replace(call, sheet.name, sql, values, f"kept the rows of {sheet.name} {condition}")

    async def _tested(self, table: str, condition: str, call: ToolCall) -> tuple[Sheet, Values, str]:
        sheet, values = (await Workspace.open(self.records, call)).sheet(table), Values()
        return sheet, values, parse_condition(condition, sheet).write(values)

    async def preview_delete(self, *, table: str, condition: str, call: ToolCall) -> JsonObject:
        """How many rows a condition would take away.

        Raises:
            ToolFailure: validation_error when there is none.
        """
        found = await self.preview_filter(table=table, condition=condition, call=call)
        if not found["kept"]:
            message = f"No row of {table} fits {condition}; there is nothing to delete."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        return {"kept": found["removed"], "removed": found["kept"], "total": found["total"]}

    @once
    async def delete(self, *, table: str, condition: str, call: ToolCall) -> JsonObject:
        """Take away the rows that a condition holds for; those where it is open stay."""
        sheet, values, test = await self._tested(table, condition, call)
        sql = f"SELECT * FROM in0 WHERE ({test}) IS NOT TRUE"  # noqa: S608
        return await self.replace(
            call, sheet.name, sql, values, f"deleted the rows of {sheet.name} {condition}"
        )

    async def preview_deduplicate(
        self, *, table: str, call: ToolCall, column: str | None = None
    ) -> JsonObject:
        """How many rows repeat an earlier one.

        Raises:
            ToolFailure: validation_error when there is nothing to remove.
        """
        workspace = await Workspace.open(self.records, call)
        sheet = workspace.sheet(table)
        keys = quote(sheet.column(column).name) if column else sheet.quoted
        sql = f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM in0)"  # noqa: S608
        duplicates = sheet.rows - int(str((await workspace.read(sql, {}, sheet)).rows[0][0]))
        if not duplicates:
            message = f"No row of {sheet.name} repeats an earlier one; there is nothing to remove."
            raise ToolFailure(FailureCategory.VALIDATION_ERROR, message)
        return {"duplicates": duplicates, "total": sheet.rows}

    @once
    async def deduplicate(self, *, table: str, call: ToolCall, column: str | None = None) -> JsonObject:
        """Keep the first of equal rows, in their order."""
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        keys = quote(sheet.column(column).name) if column else sheet.quoted
        sql = (
            f"SELECT {sheet.quoted} FROM (SELECT *, {_NUMBER} FROM in0) "  # noqa: S608
            f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY __n) = 1 ORDER BY __n"
        )
        return await self.replace(
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
        return await self.replace(
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
        return await self.create(call, name, sql, Values(), (sheet,), f"taken a sample of {sheet.name}")

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
        return await self.replace(call, sheet.name, sql, Values(), f"cleaned {names} of {sheet.name}{how}")

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
        return await self.replace(call, sheet.name, sql, values, action)

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
        return await self.replace(
            call, sheet.name, sql, Values(), f"turned {found.name} of {sheet.name} into {KINDS[type]}"
        )

    # Columns.

    @once
    async def rename(self, *, table: str, column: str, new_name: str, call: ToolCall) -> JsonObject:
        sheet = (await Workspace.open(self.records, call)).sheet(table)
        found, name = sheet.column(column), _new_column(sheet, new_name)
        sql = f"SELECT * RENAME ({quote(found.name)} AS {quote(name)}) FROM in0"  # noqa: S608
        return await self.replace(
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
        return await self.replace(call, sheet.name, sql, Values(), f"dropped {found.name} from {sheet.name}")

    @once
    async def derive(self, *, table: str, formula: str, call: ToolCall) -> JsonObject:
        sheet, values = (await Workspace.open(self.records, call)).sheet(table), Values()
        name, expression = split_formula(formula)
        written = write_formula(expression, sheet, values)
        sql = f"SELECT *, {written} AS {quote(_new_column(sheet, name))} FROM in0"  # noqa: S608
        return await self.replace(
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
        return await self.replace(call, sheet.name, sql, values, action)

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
        return await self.replace(
            call, sheet.name, sql, bound, f"inserted a row with {told} into {sheet.name}"
        )


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
