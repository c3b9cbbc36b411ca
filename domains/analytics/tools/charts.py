"""Draw charts as Vega-Lite specifications, with their data: bar, line, scatter, histogram (RS-5)."""

from __future__ import annotations

from dataclasses import replace

from domains.analytics.statements.conditions import parse_condition
from domains.analytics.statements.parts import Column, Values, invalid, quote, to_objects
from domains.analytics.statements.question import Question, write_question
from domains.analytics.store.sheet import Sheet
from domains.analytics.store.workspace import TableService
from domains.analytics.tools.display import about, show_rows
from orchestrator import Json, JsonObject, ToolCall

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MOST_POINTS = 2000
BINS = 20
_MARKS = {"bar": "bar", "line": "line", "scatter": "point", "histogram": "bar"}


class Charts(TableService):
    """Draws tables."""

    async def draw(
        self,
        *,
        table: str,
        call: ToolCall,
        kind: str = "bar",
        column: str | None = None,
        by: str | None = None,
        function: str = "average",
        condition: str | None = None,
    ) -> JsonObject:
        """Give a specification: `column` is what is measured, `by` what it is shown against."""
        (workspace, sheet), values = await self.open(call, table), Values()
        function = "count" if column is None else function
        asked = Question(condition=condition, function=function, column=column, by=by)
        if kind in {"bar", "line"}:
            against = _text_of(sheet) if kind == "bar" and by is None else by
            asked = replace(asked, by=sheet.time.name if against is None else against)
            sql = f"SELECT * FROM ({await write_question(workspace, sheet, asked, values)})"  # noqa: S608
            sql += f"{' ORDER BY 1' if kind == 'line' else ''} LIMIT {MOST_POINTS}"
        else:
            where = f" WHERE {parse_condition(condition, sheet).write(values)}" if condition else ""
            sql = (_scatter if kind == "scatter" else _histogram)(sheet, column, by, where)
        found = await workspace.read(sql, values.named, sheet)
        if not found.rows:
            raise invalid("There are no rows to draw.")
        x, y = found.columns[0], found.columns[1]
        measured = asked.measured.replace("_", " ").capitalize()
        titles = {
            "scatter": f"{y.name} against {x.name} of {sheet.name}",
            "histogram": f"{x.name} of {sheet.name}",
        }
        title = titles.get(kind, f"{measured} of {sheet.name} by {x.name}")
        rows = to_objects(found.columns, found.rows)
        return {
            **about(workspace, sheet),
            "chart": _specify(kind, title, sheet, (x, y), rows),
            "chart_kind": kind,
            "title": title,
            "among": condition or "",
            "points": len(rows),
            "lines": show_rows([x.name, y.name], rows),
        }


def _specify(
    kind: str, title: str, sheet: Sheet, axes: tuple[Column, Column], rows: list[JsonObject]
) -> JsonObject:
    """Write a Vega-Lite specification that needs nothing from elsewhere."""
    x, y = axes
    own = sheet.find(x.name)  # a year or month that is taken from a date is no number of the table's
    is_number, in_order = own is not None and own.is_number, x.is_time or own is None or own.is_time
    match kind:
        case "bar":
            across = _axis(x, "ordinal" if in_order else "nominal", sort=None)
        case "line":
            across = _axis(x, "quantitative" if is_number else "temporal" if x.is_time else "ordinal")
        case _:
            across = _axis(x, "quantitative", scale={"zero": False})
    up = _axis(y, "quantitative", **({"scale": {"zero": False}} if kind == "scatter" else {}))
    tooltip: Json = [{"field": axis["field"], "type": axis["type"]} for axis in (across, up)]
    return {
        "$schema": SCHEMA,
        "title": title,
        "width": "container",
        "data": {"values": rows},
        "mark": {"type": _MARKS[kind], "tooltip": True},
        "encoding": {"x": across, "y": up, "tooltip": tooltip},
    }


def _axis(column: Column, kind: str, **more: Json) -> JsonObject:
    """Write an axis; dots and brackets would be read as paths, so they are escaped."""
    escaped = "".join(f"\\{char}" if char in ".[]\\" else char for char in column.name)
    return {"field": escaped, "type": kind, "title": column.name.replace("_", " "), **more}


def _scatter(sheet: Sheet, column: str | None, by: str | None, where: str) -> str:
    others = [one.name for one in sheet.numbers if one.name != column]
    first = next(iter(others), "") if column is None else column
    second = next((name for name in others if name != first), "") if by is None else by
    if not first or not second:
        raise invalid("A scatter plot needs two columns of numbers.")
    names = quote(sheet.number(second).name, sheet.number(first).name)
    return f"SELECT {names} FROM in0{where} LIMIT {MOST_POINTS}"  # noqa: S608


def _histogram(sheet: Sheet, column: str | None, by: str | None, where: str) -> str:
    said = by if column is None else column
    if said is None:
        raise invalid("Of which column of numbers should I draw a histogram?")
    name = quote(sheet.number(said).name)
    width = f"greatest(max({name}) - min({name}), 1e-9) / {BINS}"
    edges = f"(SELECT min({name}) AS low, {width} AS width FROM in0{where})"  # noqa: S608
    return (
        f"SELECT low + least(floor(({name} - low) / width), {BINS - 1}) * width AS {name}, count(*) AS rows "  # noqa: S608
        f"FROM (SELECT * FROM in0{where}), {edges} WHERE {name} IS NOT NULL GROUP BY 1 ORDER BY 1"
    )


def _text_of(sheet: Sheet) -> str:
    """Choose what to draw against when nobody says it: the last column of text, which names groups most often.

    Raises:
        ToolFailure: validation_error when there is none.
    """
    if not sheet.texts:
        raise invalid("Against which column should I draw it?")
    return sheet.texts[-1].name
