"""Change one table: each change makes a new version of it, or a sample, as one step that can be undone."""

from __future__ import annotations

from collections.abc import Sequence

from domains.analytics.statements.conditions import parse_condition, read_value
from domains.analytics.statements.formulas import check_name, split_formula, write_formula
from domains.analytics.statements.parts import Column, Values, invalid, quote
from domains.analytics.store.sheet import Sheet
from domains.analytics.store.workspace import TableService
from domains.analytics.tools.display import show_value
from domains.analytics.tools.steps import Edit, edit
from orchestrator import Json, JsonObject, ToolCall

TYPES = {
    "text": ("VARCHAR", "text"),
    "number": ("DOUBLE", "numbers"),
    "whole": ("BIGINT", "whole numbers"),
    "date": ("DATE", "dates"),
}
"""The types that people may ask for: as DuckDB calls them, and as people do."""
SEPARATORS = {"space": " ", "comma": ",", "dash": "-", "slash": "/"}
MOST_PARTS = 12
_NUMBERED = "(SELECT *, row_number() OVER () AS __n FROM in0)"


class Edits(TableService):
    """Changes the tables of a workspace one by one, and says before what would be lost."""

    # Fewer rows, or the same in another order.

    @edit
    def filter(self, sheet: Sheet, *, condition: str) -> Edit:
        test, values = _test(sheet, condition)
        return Edit(f"kept the rows of {sheet.name} {condition}", f"SELECT * FROM in0 WHERE {test}", values)  # noqa: S608

    @edit
    def delete(self, sheet: Sheet, *, condition: str) -> Edit:
        """Take away the rows that a condition holds for; those where it is open stay."""
        test, values = _test(sheet, condition)
        sql = f"SELECT * FROM in0 WHERE ({test}) IS NOT TRUE"  # noqa: S608
        return Edit(f"deleted the rows of {sheet.name} {condition}", sql, values)

    @edit
    def deduplicate(self, sheet: Sheet, *, column: str | None = None) -> Edit:
        """Keep the first of equal rows, in their order."""
        sql = (
            f"SELECT {quote(*sheet.names)} FROM {_NUMBERED} "  # noqa: S608
            f"QUALIFY row_number() OVER (PARTITION BY {_keys(sheet, column)} ORDER BY __n) = 1 ORDER BY __n"
        )
        return Edit(f"taken duplicate rows out of {sheet.name}", sql)

    @edit
    def sort(self, sheet: Sheet, *, order: str, direction: str = "ascending") -> Edit:
        name, way = sheet.column(order).name, "DESC" if direction == "descending" else "ASC"
        sql = f"SELECT * FROM in0 ORDER BY {quote(name)} {way} NULLS LAST"  # noqa: S608
        return Edit(f"sorted {sheet.name} by {name}, {direction}", sql)

    @edit
    def sample(self, sheet: Sheet, *, size: int = 100, new_name: str | None = None) -> Edit:
        """Pick rows by a fixed scramble of their numbers: every worker picks the same."""
        order = f"ORDER BY (__n * 2654435761) % 4294967296, __n LIMIT {int(size)}"
        sql = f"SELECT {quote(*sheet.names)} FROM {_NUMBERED} {order}"  # noqa: S608
        return Edit(f"taken a sample of {sheet.name}", sql, name=new_name or f"{sheet.name}_sample")

    # Values.

    @edit
    def clean(self, sheet: Sheet, *, column: str | None = None, case: str = "unchanged") -> Edit:
        """Trim texts and join their inner blanks; an empty text becomes missing."""
        chosen = [sheet.column(column)] if column else [c for c in sheet.columns if c.is_text]
        if not chosen or not all(one.is_text for one in chosen):
            raise invalid(f"{chosen[0].name if chosen else sheet.name} holds no text to clean.")
        parts = ", ".join(f"{_cleaned(one, case)} AS {quote(one.name)}" for one in chosen)
        names, how = ", ".join(one.name for one in chosen), "" if case == "unchanged" else f", in {case} case"
        return Edit(f"cleaned {names} of {sheet.name}{how}", f"SELECT * REPLACE ({parts}) FROM in0")  # noqa: S608

    @edit
    def fill(
        self, sheet: Sheet, *, column: str, strategy: str = "median", fill_value: float | None = None
    ) -> Edit:
        """Give missing values of a column a value: of the column's others, or a given one."""
        found, values = sheet.column(column), Values()
        name = quote(found.name)
        replacement = _replacement(found, strategy, fill_value, values)
        sql = (
            f"SELECT {quote(*sheet.names)} FROM "  # noqa: S608
            f"(SELECT * REPLACE (coalesce({name}, {replacement}) AS {name}) FROM {_NUMBERED}) ORDER BY __n"
        )
        how = f"the {strategy}" if fill_value is None else show_value(fill_value)
        return Edit(f"filled missing {found.name} of {sheet.name} with {how}", sql, values)

    @edit
    def cast(self, sheet: Sheet, *, column: str, type: str) -> Edit:  # noqa: A002
        found, (kind, said) = sheet.column(column), TYPES[type]
        name = quote(found.name)
        sql = f"SELECT * REPLACE (TRY_CAST({name} AS {kind}) AS {name}) FROM in0"  # noqa: S608
        return Edit(f"turned {found.name} of {sheet.name} into {said}", sql)

    # Columns and rows.

    @edit
    def rename(self, sheet: Sheet, *, column: str, new_name: str) -> Edit:
        found, name = sheet.column(column), _check_new(sheet, new_name)
        sql = f"SELECT * RENAME ({quote(found.name)} AS {quote(name)}) FROM in0"  # noqa: S608
        return Edit(f"renamed {found.name} of {sheet.name} to {name}", sql)

    @edit
    def drop(self, sheet: Sheet, *, column: str) -> Edit:
        found = sheet.column(column)
        if len(sheet.columns) == 1:
            raise invalid(f"{found.name} is the only column of {sheet.name}.")
        sql = f"SELECT * EXCLUDE ({quote(found.name)}) FROM in0"  # noqa: S608
        return Edit(f"dropped {found.name} from {sheet.name}", sql)

    @edit
    def derive(self, sheet: Sheet, *, formula: str) -> Edit:
        (name, expression), values = split_formula(formula), Values()
        written = write_formula(expression, sheet, values)
        sql = f"SELECT *, {written} AS {quote(_check_new(sheet, name))} FROM in0"  # noqa: S608
        return Edit(f"added {name} = {expression} to {sheet.name}", sql, values)

    @edit
    def split_column(
        self, sheet: Sheet, *, column: str, columns: Sequence[str] = (), separator: str = "space"
    ) -> Edit:
        """Cut a text column into several new ones; the last takes what is left."""
        found, values = sheet.column(column), Values()
        names = [_check_new(sheet, one) for one in columns] or [f"{found.name}_1", f"{found.name}_2"]
        if len(set(names)) < 2 or len(names) > MOST_PARTS:
            raise invalid(f"Name two to {MOST_PARTS} different new columns.")
        mark = values.add(SEPARATORS[separator])
        split = f"string_split({quote(found.name)}::VARCHAR, {mark})"
        cut = [f"{split}[{index}]" for index in range(1, len(names))]
        cut.append(f"array_to_string({split}[{len(names)}:], {mark})")
        pairs = zip(cut, names, strict=True)
        parts = ", ".join(f"nullif(trim({part}), '') AS {quote(one)}" for part, one in pairs)
        action = f"split {found.name} of {sheet.name} into {', '.join(names)}"
        return Edit(action, f"SELECT *, {parts} FROM in0", values)  # noqa: S608

    @edit
    def insert(self, sheet: Sheet, *, values: JsonObject | None = None, condition: str | None = None) -> Edit:
        """Add one row; columns that are not named stay empty."""
        bound = Values()
        given: dict[str, Json] = dict(parse_condition(condition, sheet).equalities) if condition else {}
        for said, value in (values or {}).items():
            column = sheet.column(said)
            given[column.name] = read_value(str(value), column)
        if not given:
            raise invalid(f"Give the values as “column: value”. The columns are {', '.join(sheet.names)}.")
        marks = {name: bound.add(value) for name, value in given.items()}
        cells = [f"CAST({marks.get(c.name, 'NULL')} AS {c.type}) AS {quote(c.name)}" for c in sheet.columns]
        row = ", ".join(f"{name} {value}" for name, value in given.items())
        sql = f"SELECT * FROM in0 UNION ALL SELECT {', '.join(cells)}"  # noqa: S608
        return Edit(f"inserted a row with {row} into {sheet.name}", sql, bound)

    # What would be lost.

    async def preview_filter(self, *, table: str, condition: str, call: ToolCall) -> JsonObject:
        """Count the rows that a condition would keep and take away."""
        workspace, sheet = await self.open(call, table)
        test, values = _test(sheet, condition)
        kept = await workspace.number(f"SELECT count(*) FROM in0 WHERE {test}", values.named, sheet)  # noqa: S608
        return {"kept": kept, "removed": sheet.rows - kept, "total": sheet.rows}

    async def preview_delete(self, *, table: str, condition: str, call: ToolCall) -> JsonObject:
        """Count the rows that a condition would take away.

        Raises:
            ToolFailure: validation_error when there is none.
        """
        found = await self.preview_filter(table=table, condition=condition, call=call)
        if not found["kept"]:
            raise invalid(f"No row of {table} fits {condition}; there is nothing to delete.")
        return {"kept": found["removed"], "removed": found["kept"], "total": found["total"]}

    async def preview_deduplicate(
        self, *, table: str, call: ToolCall, column: str | None = None
    ) -> JsonObject:
        """Count the rows that repeat an earlier one.

        Raises:
            ToolFailure: validation_error when there is nothing to remove.
        """
        workspace, sheet = await self.open(call, table)
        different = f"SELECT count(*) FROM (SELECT DISTINCT {_keys(sheet, column)} FROM in0)"  # noqa: S608
        duplicates = sheet.rows - await workspace.number(different, {}, sheet)
        if not duplicates:
            raise invalid(f"No row of {sheet.name} repeats an earlier one; there is nothing to remove.")
        return {"duplicates": duplicates, "total": sheet.rows}

    async def preview_cast(self, *, table: str, column: str, type: str, call: ToolCall) -> JsonObject:  # noqa: A002
        """Count the values that another type could not hold."""
        workspace, sheet = await self.open(call, table)
        name = quote(sheet.column(column).name)
        test = f"{name} IS NOT NULL AND TRY_CAST({name} AS {TYPES[type][0]}) IS NULL"
        lost = await workspace.number(f"SELECT count(*) FROM in0 WHERE {test}", {}, sheet)  # noqa: S608
        return {"lost": lost, "total": sheet.rows}


def _test(sheet: Sheet, condition: str) -> tuple[str, Values]:
    values = Values()
    return parse_condition(condition, sheet).write(values), values


def _keys(sheet: Sheet, column: str | None) -> str:
    return quote(*(one.name for one in sheet.chosen(column)))


def _cleaned(column: Column, case: str) -> str:
    text = f"nullif(regexp_replace(trim({quote(column.name)}), '\\s+', ' ', 'g'), '')"
    if case == "title":
        words = f"string_split(lower({text}), ' ')"
        return f"array_to_string(list_transform({words}, lambda w: upper(w[1]) || w[2:]), ' ')"
    return {"lower": f"lower({text})", "upper": f"upper({text})"}.get(case, text)


def _replacement(column: Column, strategy: str, given: float | None, values: Values) -> str:
    """Write what stands in for a missing value."""
    name, functions = quote(column.name), {"mean": "avg", "median": "median", "common": "mode"}
    if not column.is_number and (given is not None or strategy in {"mean", "median", "zero"}):
        raise invalid(f"{column.name} holds no numbers; fill it with the most common or the previous value.")
    if given is not None or strategy == "zero":
        return values.add(given or 0)
    if strategy == "previous":
        return f"last_value({name} IGNORE NULLS) OVER (ORDER BY __n)"
    return f"(SELECT {functions[strategy]}({name}) FROM in0)"  # noqa: S608


def _check_new(sheet: Sheet, said: str) -> str:
    """Check the name of a new column.

    Raises:
        ToolFailure: validation_error when it cannot be one, or the table has it.
    """
    name = check_name(said)
    if name in {one.casefold() for one in sheet.names}:
        raise invalid(f"{sheet.name} has a column {name} already.")
    return name
