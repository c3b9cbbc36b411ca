"""A question about one table as a statement: for its answer, and for what is saved or exported of it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from domains.analytics.statements.conditions import Clause, Condition, parse_condition
from domains.analytics.statements.measures import group_of, measure_of
from domains.analytics.statements.parts import Column, Values, quote, quote_all
from domains.analytics.store.workspace import Sheet, Workspace, fold
from orchestrator.domain.services import FailureCategory, ToolFailure
from orchestrator.types import JsonObject


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
        """From the slots of a flow; those that are no part of a question are left out."""
        known = {one.name for one in fields(cls)}
        kept = {name: value for name, value in said.items() if name in known and value is not None}
        return cls(**{**kept, "columns": tuple(kept.get("columns") or ())})


async def write_question(workspace: Workspace, sheet: Sheet, asked: Question, values: Values) -> str:
    """The statement, over `in0`; what was said goes into `values`.

    Raises:
        ToolFailure: not_found for a column that is not there, validation_error for what makes no sense.
    """
    read = parse_condition(asked.condition, sheet) if asked.condition else None
    where = write_where(read, await held_by(workspace, sheet, asked.value), values)
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
    """One number, or one per group: the greatest first unless ascending is said, periods in their order."""
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


def write_where(condition: Condition | None, one: Clause | None, values: Values) -> str:
    """Both together as the restriction of a statement; empty when there is neither."""
    parts = [f"({condition.write(values)})"] if condition else []
    parts += [Condition((((one,),),)).write(values)] if one else []
    return f" WHERE {' AND '.join(parts)}" if parts else ""


async def held_by(workspace: Workspace, sheet: Sheet, value: str | None) -> Clause | None:
    """The clause that a value alone stands for: the text column in which it occurs."""
    return None if value is None else Clause(await column_with(workspace, sheet, value), "=", value)


async def column_with(workspace: Workspace, sheet: Sheet, value: str) -> Column:
    """The text column in which a value occurs.

    Raises:
        ToolFailure: validation_error when none has it.
    """
    for column in sheet.columns:
        if column.is_text:
            sql = f"SELECT count(*) FROM in0 WHERE lower({quote(column.name)}) = lower($v0)"  # noqa: S608
            if (await workspace.read(sql, {"v0": value}, sheet)).rows[0][0]:
                return column
    raise ToolFailure(FailureCategory.VALIDATION_ERROR, _unknown(sheet, value))


def _unknown(sheet: Sheet, value: str) -> str:
    texts = [column.name for column in sheet.columns if column.is_text]
    where = f" Its columns of text are {', '.join(texts)}." if texts else ""
    return f"No column of {sheet.name} has the value {value!r}.{where}"
