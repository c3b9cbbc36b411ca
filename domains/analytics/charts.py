"""The tool that computes the rows of bar, line and scatter charts and histograms. RES draws the charts (RS-5)."""

from __future__ import annotations

from domains.analytics.catalogue import Column, tables_with
from domains.analytics.display import show_rows
from domains.analytics.engine import invalid, quote
from domains.analytics.workspace import Sheet, TableService, Workspace
from parley import JsonObject, ToolCall

MOST_POINTS = 2000
BINS = 20
_FUNCTIONS = {"average": "avg", "sum": "sum", "median": "median", "minimum": "min", "maximum": "max"}


class Charts(TableService):
    async def draw(
        self,
        *,
        call: ToolCall,
        table: str | None = None,
        table_id: str | None = None,
        kind: str = "bar",
        column: str | None = None,
        by: str | None = None,
        function: str | None = None,
    ) -> JsonObject:
        """Return the rows for a chart of `column` against `by`.

        `kind`: bar, line, scatter or histogram. `function`: combines the values in a group. Columns that are
        None are chosen to suit the kind.

        Raises:
            ToolFailure: not_found or validation_error if the data can't be plotted.
        """
        workspace, sheet = await self._choose(call, table, table_id, (column, by))
        if kind == "scatter":
            sql, title = _scatter(sheet, column, by)
        elif kind == "histogram":
            sql, title = _histogram(sheet, column or by)
        else:
            sql, title = _group(sheet, kind, column, by, function)
        shown, rows = await workspace.show(sheet.name, f"{sql} LIMIT {MOST_POINTS}")
        if shown.rows > len(rows):
            rows = (await workspace.read(shown.sql)).to_objects()
        if not rows:
            raise invalid("There are no rows to plot.")
        return {
            **workspace.about(sheet),
            "table_id": shown.table_id,
            "rows": rows,
            "chart_kind": kind,
            "chart_type": "bar" if kind == "histogram" else kind,  # the rows already contain the counts
            "title": title,
            "points": len(rows),
            "lines": list(show_rows(shown.names, rows)),
        }

    async def _choose(
        self, call: ToolCall, table: str | None, table_id: str | None, columns: tuple[str | None, ...]
    ) -> tuple[Workspace, Sheet]:
        """Return the workspace and the table or result to plot.

        If neither is named, choose the only base table that has all the columns. If a result lacks a column,
        choose `table` instead.
        """
        if table is None and table_id is None:
            fitting = tables_with([name for name in columns if name is not None])
            if len(fitting) != 1:
                raise invalid("Which table should I plot?")
            table = fitting[0]
        workspace, sheet = await self.open(call, table, table_id)
        if not sheet.has(*columns) and table is not None:
            sheet = workspace.sheet(table)
        return workspace, sheet


def _group(
    sheet: Sheet, kind: str, column: str | None, by: str | None, function: str | None
) -> tuple[str, str]:
    group = sheet.column(by) if by is not None else _group_of(sheet, kind)
    number = next((one for one in sheet.columns if one.is_number and one != group), None)
    if sheet.table_id and column is None and function is None and number is not None:
        names, title = quote(group.name, number.name), f"{number.name.capitalize()} by {group.name}"
        return f"SELECT {names} FROM ({sheet.sql})", title  # noqa: S608 - names are quoted
    function = function or ("count" if column is None else "average")
    if function == "count" or column is None:
        measure, title, name = "count(*)", "Rows", "rows"
    else:
        name = sheet.number(column).name
        measure, title = f"{_FUNCTIONS[function]}({quote(name)})", f"{function.capitalize()} {name}"
    order = "1" if kind == "line" or group.is_time else "2 DESC, 1"
    sql = f"SELECT {quote(group.name)}, {measure} AS {quote(name)} FROM ({sheet.sql}) GROUP BY 1 ORDER BY {order}"  # noqa: S608
    return sql, f"{title} of {sheet.name} by {group.name}"


def _group_of(sheet: Sheet, kind: str) -> Column:
    """Return the default column to group by.

    Line charts prefer the first date column, and bar charts the last text column.
    """
    times = [one for one in sheet.columns if one.is_time]
    texts = [one for one in reversed(sheet.columns) if one.is_text]
    for one in [*times, *texts] if kind == "line" else [*texts, *times]:
        return one
    raise invalid("Which column should I plot it against?")


def _scatter(sheet: Sheet, column: str | None, by: str | None) -> tuple[str, str]:
    numbers = [one.name for one in sheet.columns if one.is_number]
    up = column or next((name for name in numbers if name != by), None)
    across = by or next((name for name in numbers if name != up), None)
    if up is None or across is None:
        raise invalid("A scatter plot needs two numeric columns.")
    names = quote(sheet.number(across).name, sheet.number(up).name)
    return f"SELECT {names} FROM ({sheet.sql})", f"{up} against {across} of {sheet.name}"  # noqa: S608


def _histogram(sheet: Sheet, column: str | None) -> tuple[str, str]:
    if column is None:
        raise invalid("Which numeric column should I plot?")
    name, source = quote(sheet.number(column).name), f"({sheet.sql})"
    width = f"greatest(max({name}) - min({name}), 1e-9) / {BINS}"
    edges = f"(SELECT min({name}) AS low, {width} AS width FROM {source})"  # noqa: S608
    sql = (
        f"SELECT low + least(floor(({name} - low) / width), {BINS - 1}) * width AS {name}, count(*) AS rows "  # noqa: S608
        f"FROM {source}, {edges} WHERE {name} IS NOT NULL GROUP BY 1 ORDER BY 1"
    )
    return sql, f"{column} of {sheet.name}"
