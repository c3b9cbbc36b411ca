"""Write what is measured and by what it is grouped, as parts of statements and in words."""

from __future__ import annotations

from collections.abc import Mapping

from domains.analytics.statements.parts import Column, invalid, quote
from domains.analytics.store.sheet import Sheet, fold

FUNCTIONS: Mapping[str, str] = {
    "count": "count({})",
    "distinct": "count(DISTINCT {})",
    "sum": "sum({})",
    "average": "avg({})",
    "median": "median({})",
    "minimum": "min({})",
    "maximum": "max({})",
    "deviation": "stddev_samp({})",
}
_PHRASES: Mapping[str, str] = {
    "count": "number of {} values",
    "distinct": "number of different {} values",
    "sum": "total {}",
    "average": "average {}",
    "median": "median {}",
    "minimum": "lowest {}",
    "maximum": "highest {}",
    "deviation": "standard deviation of {}",
}
_OF_NUMBERS = frozenset({"sum", "average", "median", "deviation"})
_PERIODS = frozenset({"year", "month"})


def phrase_of(function: str, column: str | None) -> str:
    """Say what is measured."""
    return "rows" if column is None else _PHRASES[function].format(column)


def among(condition: str | None, value: str | None) -> str:
    """Say which rows were looked at, if not all."""
    parts = [f"of {value}" if value else "", condition or ""]
    return " ".join(part for part in parts if part)


def measure_of(sheet: Sheet, function: str, column: str | None) -> str:
    """Write a function over a column as a part of a statement.

    Raises:
        ToolFailure: validation_error when the function does not go with the column.
    """
    if column is None:
        if function != "count":
            raise invalid(
                f"Of which column should I take the {function}? There are {', '.join(sheet.names)}."
            )
        return "count(*)"
    found = sheet.column(column)
    if function in _OF_NUMBERS and not found.is_number:
        raise invalid(f"{found.name} holds no numbers, so it has no {function}.")
    return FUNCTIONS[function].format(quote(found.name))


def group_of(sheet: Sheet, said: str) -> tuple[str, str, bool]:
    """Write what to group by: expression, its name, and whether it is a period."""
    found = sheet.find(said)
    period = fold(said)
    if found is not None and not (found.is_time and period in _PERIODS):
        return quote(found.name), found.name, found.is_time
    if period not in _PERIODS:
        return quote(sheet.column(said).name), period, False
    name = quote((found or time_of(sheet)).name)
    if period == "month":
        return f"strftime({name}, '%Y-%m')", "month", True
    return f"year({name})", "year", True


def time_of(sheet: Sheet) -> Column:
    """Find the table's first column of dates.

    Raises:
        ToolFailure: validation_error when it has none.
    """
    found = next((column for column in sheet.columns if column.is_time), None)
    if found is None:
        raise invalid(f"{sheet.name} has no column of dates.")
    return found


def number_of(sheet: Sheet, said: str) -> Column:
    """Find a column of numbers.

    Raises:
        ToolFailure: not_found, or validation_error when it holds something else.
    """
    found = sheet.column(said)
    if not found.is_number:
        raise invalid(
            f"{found.name} holds no numbers. Columns of numbers are {', '.join(c.name for c in sheet.numbers)}."
        )
    return found
