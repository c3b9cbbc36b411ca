"""Write a question about one table as a statement: rows, or a measure of each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from domains.analytics.catalogue import PERIODS
from domains.analytics.statements.conditions import Clause, Condition, parse_condition
from domains.analytics.statements.parts import Column, Values, invalid, quote, words
from domains.analytics.store.sheet import Sheet, fold
from domains.analytics.store.workspace import Workspace
from orchestrator import JsonObject

FUNCTIONS: Mapping[str, tuple[str, str]] = {
    "count": ("count({})", "number of {} values"),
    "distinct": ("count(DISTINCT {})", "number of different {} values"),
    "sum": ("sum({})", "total {}"),
    "average": ("avg({})", "average {}"),
    "median": ("median({})", "median {}"),
    "minimum": ("min({})", "lowest {}"),
    "maximum": ("max({})", "highest {}"),
    "deviation": ("stddev_samp({})", "standard deviation of {}"),
}
"""How each is written, and how it is said."""
_OF_NUMBERS = words("sum average median deviation")


@dataclass(frozen=True, slots=True)
class Question:
    """Rows of a table, or with a `function` numbers, one per group of `by` and `also_by`."""

    columns: tuple[str, ...] = ()
    condition: str | None = None
    value: str | None = None
    order: str | None = None
    direction: str | None = None
    limit: int | None = None
    function: str | None = None
    column: str | None = None
    by: str | None = None
    also_by: str | None = None

    @classmethod
    def of(cls, said: JsonObject) -> Question:
        """Take it from the slots of a flow; those that are no part of a question are left out."""
        known = {one.name for one in fields(cls)}
        kept = {name: value for name, value in said.items() if name in known and value is not None}
        return cls(**{**kept, "columns": tuple(kept.get("columns") or ())})

    @property
    def measured(self) -> str:
        """Say what is measured."""
        return "rows" if self.column is None else FUNCTIONS[self.function or "count"][1].format(self.column)

    @property
    def among(self) -> str:
        """Say which rows are looked at, if not all."""
        return " ".join(part for part in (f"of {self.value}" if self.value else "", self.condition) if part)

    def name_of(self, table: str) -> str:
        """Name what is asked of a table: "the average mpg of cars by origin", "cars where mpg over 40"."""
        groups = " and ".join(name for name in (self.by, self.also_by) if name)
        if self.function:
            what = f"the {self.measured if self.column else 'number of rows'} of {table}"
        else:
            what = f"{', '.join(self.columns)} of {table}" if self.columns else table
        parts = (
            f"the first {self.limit} of" if self.limit is not None else "",
            what,
            f"by {groups}" if groups else "",
            self.among,
            f"in {self.direction or 'ascending'} order of {self.order}" if self.order else "",
        )
        return " ".join(part for part in parts if part)


async def write_question(workspace: Workspace, sheet: Sheet, asked: Question, values: Values) -> str:
    """Write the statement, over `in0`; what was said goes into `values`.

    Raises:
        ToolFailure: not_found for a column that is not there, validation_error for what makes no sense.
    """
    clauses = parse_condition(asked.condition, sheet).clauses if asked.condition else ()
    if asked.value is not None:
        clauses = (*clauses, Clause(await column_with(workspace, sheet, asked.value), "=", (asked.value,)))
    where = f" WHERE {Condition(clauses).write(values)}" if clauses else ""
    limit = f" LIMIT {int(asked.limit)}" if asked.limit is not None else ""
    if asked.function is not None:
        return _write_measure(sheet, asked, where) + limit
    chosen = [sheet.column(name).name for name in asked.columns] or sheet.names
    order = ""
    if asked.order is not None:
        way = "DESC" if asked.direction == "descending" else "ASC"
        order = f" ORDER BY {quote(sheet.column(asked.order).name)} {way} NULLS LAST"
    return f"SELECT {quote(*chosen)} FROM in0{where}{order}{limit}"  # noqa: S608 - quoted names


def _write_measure(sheet: Sheet, asked: Question, where: str) -> str:
    """Write one number, or one per group: the greatest first unless ascending is said, periods in their order."""
    measure = measure_of(sheet, asked.function or "count", asked.column)
    label = quote(fold(f"{asked.function}_{asked.column}" if asked.column else f"{asked.function}"))
    groups = [group_of(sheet, name) for name in (asked.by, asked.also_by) if name is not None]
    named = [f"{group} AS {quote(name)}" for group, name, _ in groups]
    sql = f"SELECT {', '.join([*named, f'{measure} AS {label}'])} FROM in0{where}"  # noqa: S608 - quoted names
    if not groups:
        return sql
    last = len(groups) + 1
    places = ", ".join(str(place) for place in range(1, last))
    ranked = asked.limit is not None or asked.direction is not None
    in_order = not ranked and (groups[0][2] or len(groups) > 1)
    way = "ASC" if asked.direction == "ascending" else "DESC"
    return f"{sql} GROUP BY {places} ORDER BY {places if in_order else f'{last} {way} NULLS LAST, {places}'}"


def measure_of(sheet: Sheet, function: str, column: str | None) -> str:
    """Write a function over a column as a part of a statement.

    Raises:
        ToolFailure: validation_error when the function does not go with the column.
    """
    if column is None and function != "count":
        raise invalid(f"Of which column should I take the {function}? There are {', '.join(sheet.names)}.")
    if column is None:
        return "count(*)"
    found = sheet.column(column)
    if function in _OF_NUMBERS and not found.is_number:
        raise invalid(f"{found.name} holds no numbers, so it has no {function}.")
    return FUNCTIONS[function][0].format(quote(found.name))


def group_of(sheet: Sheet, said: str) -> tuple[str, str, bool]:
    """Write what to group by: expression, its name, and whether it is a period."""
    found, period = sheet.find(said), fold(said)
    if period not in PERIODS or (found is not None and not found.is_time):
        column = sheet.column(said)
        return quote(column.name), column.name, column.is_time
    name = quote((found or sheet.time).name)
    return (f"strftime({name}, '%Y-%m')" if period == "month" else f"year({name})"), period, True


async def column_with(workspace: Workspace, sheet: Sheet, value: str) -> Column:
    """Find the text column in which a value occurs.

    Raises:
        ToolFailure: validation_error when none has it.
    """
    for column in sheet.texts:
        sql = f"SELECT count(*) FROM in0 WHERE lower({quote(column.name)}) = lower($v0)"  # noqa: S608
        if await workspace.number(sql, {"v0": value}, sheet):
            return column
    where = f" Its columns of text are {', '.join(one.name for one in sheet.texts)}." if sheet.texts else ""
    raise invalid(f"No column of {sheet.name} has the value {value!r}.{where}")
