"""Show tables in an answer of a few lines, and say of rows what every tool says of those it found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from domains.analytics.statements.parts import to_json, to_objects
from domains.analytics.store.sheet import Sheet
from domains.analytics.store.workspace import PAGE_ROWS, Workspace
from orchestrator import Json, JsonObject

MOST_LINES = 6
LONGEST_CELL = 40
_YEARS = frozenset({"year", "years", "month"})


def show_value(value: object, name: str = "") -> str:
    """Write a value as people read it: thousands set apart, few decimals, years as they are."""
    plain = to_json(value)
    if plain is None:
        return "–"
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, int):
        return str(plain) if name in _YEARS else f"{plain:,}"
    if isinstance(plain, float):
        return _show_float(plain)
    text = str(plain)
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"


def _show_float(value: float) -> str:
    if value.is_integer() and abs(value) < 1e15:
        return f"{value:,.0f}"
    if 0 < abs(value) < 0.01:
        return f"{value:.2g}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def show_rows(names: Sequence[str], rows: Sequence[JsonObject], most: int = MOST_LINES) -> list[str]:
    """Write one text per row: ``USA: 119.9`` for two columns, else the values in order."""
    lines: list[str] = []
    for row in rows[:most]:
        cells = [show_value(row[name], name) for name in names]
        lines.append(f"{cells[0]}: {cells[1]}" if len(cells) == 2 else ", ".join(cells))
    return lines


def describe_rows(names: Sequence[str], rows: list[JsonObject], count: int) -> JsonObject:
    """Give rows for the frame and lines for the answer."""
    lines = show_rows(names, rows)
    return {
        "columns": list(names),
        "header": ", ".join(names),
        "rows": rows[:PAGE_ROWS],
        "row_count": count,
        "lines": list(lines),
        "more": max(0, count - len(lines)),
    }


def about(workspace: Workspace, sheet: Sheet) -> JsonObject:
    """Give what later turns may need: the table spoken of, and names that no catalogue knows."""
    return {"table": sheet.name, "names": workspace.own_names}


async def answer(workspace: Workspace, sql: str, values: Mapping[str, Json], *sheets: Sheet) -> JsonObject:
    """Ask a question; gives the first page of its rows, and a `table_id` when there are more pages."""
    found = await workspace.read(f"SELECT * FROM ({sql}) LIMIT {PAGE_ROWS + 1}", values, *sheets)  # noqa: S608
    rows = to_objects(found.columns, found.rows)
    names = [column.name for column in found.columns]
    code = show_code(sql, sheets)
    if len(rows) <= PAGE_ROWS:
        return {**about(workspace, sheets[0]), **describe_rows(names, rows, len(rows)), "code": code}
    made = await workspace.make("", sql, values, *(sheet.node for sheet in sheets))
    return {
        **about(workspace, sheets[0]),
        **describe_rows(names, rows, made.rows),
        "table_id": made.node,
        "code": code,
    }


async def show_sheet(workspace: Workspace, sheet: Sheet) -> JsonObject:
    """Show a whole table: its first page, with its node as `table_id`."""
    found = await workspace.read(f"SELECT * FROM in0 LIMIT {PAGE_ROWS}", {}, sheet)  # noqa: S608
    rows = to_objects(found.columns, found.rows)
    return {
        **about(workspace, sheet),
        **describe_rows(sheet.names, rows, sheet.rows),
        "table_id": sheet.node,
    }


def show_code(sql: str, sheets: Sequence[Sheet]) -> str:
    """Write a statement with the tables' names, for people to read."""
    for index, sheet in enumerate(sheets):
        sql = re.sub(rf'(?<!")\bin{index}\b(?!")', lambda _, name=sheet.name: name, sql)
    return sql
