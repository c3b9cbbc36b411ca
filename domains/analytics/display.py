from __future__ import annotations

from collections.abc import Sequence

from domains.analytics.engine import to_json
from domains.analytics.workspace import Sheet
from parley import JsonObject

MOST_LINES = 6
LONGEST_CELL = 40
_YEARS = frozenset({"year", "years", "month"})


def show_value(value: object, name: str = "") -> str:
    """Format a cell in the column `name` for users. Numbers get thousands separators, except years and months."""
    plain = to_json(value)
    if plain is None:
        return "–"
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, int):
        return str(plain) if name in _YEARS else f"{plain:,}"
    if isinstance(plain, float):
        if 0 < abs(plain) < 0.01:
            return f"{plain:.2g}"
        return f"{plain:,.2f}".rstrip("0").rstrip(".")
    text = str(plain)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def show_rows(names: Sequence[str], rows: Sequence[JsonObject]) -> list[str]:
    """Format up to `MOST_LINES` rows, one per line.

    Rows with two columns read ``USA: 119.9``. In other rows, cells are separated by commas.
    """
    lines: list[str] = []
    for row in rows[:MOST_LINES]:
        cells = [show_value(row[name], name) for name in names]
        lines.append(f"{cells[0]}: {cells[1]}" if len(cells) == 2 else ", ".join(cells))
    return lines


def describe_rows(names: Sequence[str], rows: list[JsonObject], count: int) -> JsonObject:
    """Return the data for an answer about rows, including text lines. `count`: number of rows in the entire result."""
    lines = show_rows(names, rows)
    return {
        "columns": list(names),
        "header": ", ".join(names),
        "rows": rows,
        "row_count": count,
        "lines": list(lines),
        "more": max(0, count - len(lines)),
    }


def describe_sheet(sheet: Sheet, rows: list[JsonObject]) -> JsonObject:
    """Return the data for an answer about a result. `rows`: the first page of the result."""
    return {**describe_rows(sheet.names, rows, sheet.rows), "table_id": sheet.table_id, "code": sheet.code}
