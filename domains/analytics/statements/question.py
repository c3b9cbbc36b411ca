"""Write a question about one table as a statement: for its answer, and for what is saved or exported of it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from domains.analytics.statements.conditions import Clause, Condition, parse_condition
from domains.analytics.statements.measures import group_of, measure_of
from domains.analytics.statements.parts import Column, Values, invalid, quote, quote_all
from domains.analytics.store.sheet import Sheet, fold
from domains.analytics.store.workspace import Workspace
from orchestrator import JsonObject


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


async def write_question(workspace: Workspace, sheet: Sheet, asked: Question, values: Values) -> str:
    """Write the statement, over `in0`; what was said goes into `values`.

    Raises:
        ToolFailure: not_found for a column that is not there, validation_error for what makes no sense.
    """
    where = await write_where(workspace, sheet, asked.condition, asked.value, values)
    limit = f" LIMIT {int(asked.limit)}" if asked.limit is not None else ""
    if asked.function is not None:
        return _write_measure(sheet, asked, where) + limit
    chosen = [sheet.column(name) for name in asked.columns] or list(sheet.columns)
    order = ""
    if asked.order is not None:
        way = "DESC" if asked.direction == "descending" else "ASC"
        order = f" ORDER BY {quote(sheet.column(asked.order).name)} {way} NULLS LAST"
    return f"SELECT {quote_all([c.name for c in chosen])} FROM in0{where}{order}{limit}"  # noqa: S608 - quoted names


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
    ranked = asked.limit is not None or asked.direction is not None
    way = "ASC" if asked.direction == "ascending" else "DESC"
    places = ", ".join(str(place) for place in range(1, last))
    in_order = not ranked and (groups[0][2] or len(groups) > 1)
    order = places if in_order else f"{last} {way} NULLS LAST, {places}"
    return f"{sql} GROUP BY {places} ORDER BY {order}"


async def write_where(
    workspace: Workspace, sheet: Sheet, condition: str | None, value: str | None, values: Values
) -> str:
    """Write the restriction to a condition and to a value that some column of text holds; empty without both."""
    clauses = parse_condition(condition, sheet).clauses if condition else ()
    if value is not None:
        clauses = (*clauses, Clause(await column_with(workspace, sheet, value), "=", (value,)))
    return f" WHERE {Condition(clauses).write(values)}" if clauses else ""


async def column_with(workspace: Workspace, sheet: Sheet, value: str) -> Column:
    """Find the text column in which a value occurs.

    Raises:
        ToolFailure: validation_error when none has it.
    """
    for column in sheet.columns:
        if column.is_text:
            sql = f"SELECT count(*) FROM in0 WHERE lower({quote(column.name)}) = lower($v0)"  # noqa: S608
            if (await workspace.read(sql, {"v0": value}, sheet)).rows[0][0]:
                return column
    raise invalid(_unknown(sheet, value))


def _unknown(sheet: Sheet, value: str) -> str:
    texts = [column.name for column in sheet.columns if column.is_text]
    where = f" Its columns of text are {', '.join(texts)}." if texts else ""
    return f"No column of {sheet.name} has the value {value!r}.{where}"
